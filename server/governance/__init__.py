"""Who may: identity, rights, policy, shares, sign-ins, the questions to a user, and the audit log of it."""
