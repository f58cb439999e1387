"""Models of which only the answers are known: functions of the caller, and servers."""
