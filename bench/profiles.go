package bench

// profiles are all profiles, in the order in which they run.
func profiles() []profile {
	return []profile{
		{"stream", "bulk TCP between two pods of a Node, one stream and eight", "TCP streams between two pods of a Node", runStream},
		{"rr", "round trips between two pods of a Node, with percentiles", "TCP round trips between two pods of a Node", runRR},
		{"connect", "new TCP connections between two pods of a Node", "TCP connections between two pods of a Node", runConnect},
		{"forward", "frames a second without loss between two veths, by size", "Forwarding between two veths without loss", runForward},
	}
}
