"""Who may: identity, rights, policy, shares, sign-ins, and the audit log of it."""
