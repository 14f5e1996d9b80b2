"""What recognises one kind of personal data, or one kind of text, each: functions from a text to findings.

They are plain functions, so that each can be read and tested alone; `server/privacy/detection/detect.py` has the table
of them. None may take more than linear time: quantifiers are bounded, a match starts only where the character before
it cannot belong to it, and no two neighbouring repetitions match the same characters.
"""
