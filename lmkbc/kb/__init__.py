"""Knowledge bases: building, audits, exports and pages."""
