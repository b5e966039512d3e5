package config

import "github.com/antrail/antrail/switchd/local"

// The sections that are the switch's own settings.
type (
	// Conntrack is the section about connections.
	Conntrack = local.Conntrack
	// AFXDP is the section about cards.
	AFXDP = local.AFXDP
	// Duration is a time in its text form: 90s, 24h.
	Duration = local.Duration
)
