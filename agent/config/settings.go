package config

import "github.com/antrail/antrail/switchd"

// The parts of the configuration that are the switch's own settings.
type (
	// Conntrack is the section about connections.
	Conntrack = switchd.Conntrack
	// AFXDP is the section about cards.
	AFXDP = switchd.AFXDP
	// Duration is a time in its text form: 90s, 24h.
	Duration = switchd.Duration
)
