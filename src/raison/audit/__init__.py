"""Which explanations can be trusted on this model: one suite of tests with a verdict on every method."""

from raison.audit.cost import AuditCost, estimate_audit
from raison.audit.job import METHODS, AuditPlan
from raison.audit.suite import audit

__all__ = ["METHODS", "AuditCost", "AuditPlan", "audit", "estimate_audit"]
