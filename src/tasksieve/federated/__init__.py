"""Sites keep their rows: paths of the pooled model from sums over sites, each value with its duality gap."""
