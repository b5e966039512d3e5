package conntrack

import (
	"cmp"
	"fmt"
)

// Options bounds a measurement of connection tracking. A field that is zero has a default.
type Options struct {
	// Rounds is how many times each side runs, 3 by default.
	Rounds int
	// Entries is how many connections a large table has, 1,000,000 by default.
	Entries int
	// Packets is how many packets a figure is measured with, 200,000 by default.
	Packets int
}

// Check returns an error if the options cannot be run.
func (o Options) Check() error { return o.complete() }

// complete sets defaults and checks the options.
func (o *Options) complete() error {
	o.Rounds = cmp.Or(o.Rounds, 3)
	o.Entries = cmp.Or(o.Entries, 1_000_000)
	o.Packets = cmp.Or(o.Packets, 200_000)
	if o.Rounds < 0 || o.Packets < 1000 || o.Packets > 10_000_000 || o.Entries < leastEntries || o.Entries > 10_000_000 {
		return fmt.Errorf("bench: %d rounds of %d packets with %d connections: rounds are positive, packets 1000 to 10000000, entries 10000 to 10000000",
			o.Rounds, o.Packets, o.Entries)
	}
	return nil
}

// sizes are the numbers of connections at which packets are tracked.
func (o *Options) sizes() [3]int { return [3]int{1, o.Entries / 10, o.Entries} }

// creations is how many new connections a rate is measured with. They are so few that the table about
// keeps its size.
func (o *Options) creations() int { return min(o.Packets, o.Entries/20) }

// leastEntries is the fewest connections that a large table may have.
const leastEntries = 10_000
