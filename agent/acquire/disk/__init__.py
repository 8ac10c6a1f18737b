"""A storage root as a job sees it: where things lie, whether they fit, and how they come and go."""
