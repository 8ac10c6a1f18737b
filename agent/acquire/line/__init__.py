"""HTTP as the bytes of a model need it: connections, answers, redirects by hand, stalls."""
