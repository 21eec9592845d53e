"""Stage weights: the weight of every edge, registered so that any night can be restored."""
