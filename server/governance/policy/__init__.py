"""Policy as text: who may run what, call which tools and have which personal data restored, by the rules of a file."""
