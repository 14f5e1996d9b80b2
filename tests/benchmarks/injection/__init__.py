"""AgentDojo's tasks and injections through sealab: what a program does that follows a text, by profile."""
