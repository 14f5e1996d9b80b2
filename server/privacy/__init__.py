"""Personal data that the model never sees: finding it, standing tokens in for it, giving it back to tools."""
