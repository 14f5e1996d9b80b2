"""Containers as pods of Kubernetes, by the API of the cluster that this server runs in."""
