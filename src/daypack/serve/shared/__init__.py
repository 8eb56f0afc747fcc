"""What several servers on one database share: rate limits and metrics. (The audit log is in memory/audit_log.)"""
