package config

// Drops is the part of the configuration about lost packets.
type Drops struct {
	// Keep is how many dropped packets can be asked for.
	Keep int `json:"keep,omitempty" unit:"packets"`
	// Log writes a line to the agent's log when a port begins to lose packets for
	// a reason in a table, and at most one a minute after that.
	Log *bool `json:"log,omitempty"`
}

// DefaultKeep is how many lost packets are kept by default.
const DefaultKeep = 4096

// mostKept bounds them.
const mostKept = 1 << 20

func (d *Drops) setDefaults() {
	orDefault(&d.Keep, DefaultKeep)
	orDefault(&d.Log, new(true))
}

func (d *Drops) check(f *faults) {
	f.check(d.Keep >= 1 && d.Keep <= mostKept, "drops.keep: %d is not between 1 and %d", d.Keep, mostKept)
}
