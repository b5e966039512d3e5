package config

// Drops is the section about dropped packets.
type Drops struct {
	// Keep is how many dropped packets the agent keeps.
	Keep int `json:"keep,omitempty" unit:"packets"`
	// Log writes a line to the agent's log when a port begins to drop packets for a reason in a
	// table. After that it writes one a minute at most.
	Log *bool `json:"log,omitempty"`
}

// DefaultKeep is how many dropped packets are kept by default.
const DefaultKeep = 4096

// mostKept is the largest Keep.
const mostKept = 1 << 20

func (d *Drops) setDefaults() {
	orDefault(&d.Keep, DefaultKeep)
	orDefault(&d.Log, new(true))
}

func (d *Drops) check(f *faults) {
	f.check(d.Keep >= 1 && d.Keep <= mostKept, "drops.keep: %d is not between 1 and %d", d.Keep, mostKept)
}
