"""Adapters: one for each way of predicting, and the checks and measurements that need one."""
