package local

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
)

// Conntrack has the settings of connections.
type Conntrack struct {
	// Max is how many connections may exist. Each takes 208 bytes of memory, allocated at the
	// start.
	Max int `json:"max,omitempty" unit:"connections" default:"32,768 for each processor, at least 131,072"`
	// NewRate is how many connections a port may begin in a second, after a burst of two seconds'
	// worth; -1 is unlimited.
	NewRate int `json:"newRate,omitempty" unit:"connections/s" default:"20,000"`
	// ZoneMax is how many connections a zone may have that is not in zones.
	ZoneMax uint32 `json:"zoneMax,omitempty" unit:"connections" default:"no limit"`
	// Zones is the same limit for single zones, by number; 0 allows none.
	Zones map[uint16]uint32 `json:"zones,omitempty" unit:"connections"`
	// Profile is the base of the timeouts: default, or ovs for those of Open vSwitch's userspace
	// datapath.
	Profile string `json:"profile,omitempty"`
	// Timeouts are those that differ from the profile, by name, 1s to 720h.
	Timeouts map[string]Duration `json:"timeouts,omitempty"`
}

// namedTimeout is a timeout with its name in the configuration.
type namedTimeout struct {
	name string
	at   *time.Duration
}

// namedTimeouts are all timeouts of t.
func namedTimeouts(t *proto.Timeouts) []namedTimeout {
	return []namedTimeout{
		{"tcpSynSent", &t.TCPSynSent}, {"tcpSynReceived", &t.TCPSynReceived}, {"tcpEstablished", &t.TCPEstablished},
		{"tcpHalfClosed", &t.TCPHalfClosed}, {"tcpLastAck", &t.TCPLastAck}, {"tcpClosed", &t.TCPClosed}, {"tcpReset", &t.TCPReset},
		{"udpSingle", &t.UDPSingle}, {"udpReplied", &t.UDPReplied},
		{"icmpSingle", &t.ICMPSingle}, {"icmpReplied", &t.ICMPReplied},
		{"sctpOpening", &t.SCTPOpening}, {"sctpEstablished", &t.SCTPEstablished},
		{"sctpClosing", &t.SCTPClosing}, {"sctpClosed", &t.SCTPClosed},
		{"otherSingle", &t.OtherSingle}, {"otherReplied", &t.OtherReplied},
	}
}

// AllTimeouts are the profile's, with those that differ.
func (c *Conntrack) AllTimeouts() proto.Timeouts {
	t := proto.DefaultTimeouts()
	if c.Profile == "ovs" {
		t = proto.OVSTimeouts()
	}
	for _, n := range namedTimeouts(&t) {
		if d, ok := c.Timeouts[n.name]; ok {
			*n.at = time.Duration(d)
		}
	}
	return t
}

// Bounds of Max, if it is given.
const (
	minCT = 1 << 10
	maxCT = 1 << 26 // takes 13 GB
)

// Check calls fault for each value, with whether it is valid and the message if it is not.
func (c *Conntrack) Check(fault func(ok bool, format string, args ...any)) {
	fault(c.Max == 0 || c.Max >= minCT && c.Max <= maxCT, "conntrack.max: %d is not between %d and %d", c.Max, minCT, maxCT)
	fault(c.NewRate >= -1 && c.NewRate <= 1e9, "conntrack.newRate: %d is not between 1 and 1000000000, nor -1", c.NewRate)
	fault(c.Profile == "" || c.Profile == "default" || c.Profile == "ovs", "conntrack.profile: %q is neither default nor ovs", c.Profile)
	var names []string
	for _, n := range namedTimeouts(&proto.Timeouts{}) {
		names = append(names, n.name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Timeouts)) {
		at := fmt.Sprintf("conntrack.timeouts.%s", name)
		d := time.Duration(c.Timeouts[name])
		fault(slices.Contains(names, name), "%s: is none of %s", at, strings.Join(names, ", "))
		fault(d >= time.Second && d <= proto.MaxTimeout, "%s: %v is not between 1s and %v", at, d, proto.MaxTimeout)
	}
}

// Configure sets the connection table's part of a Config.
func (c *Conntrack) Configure(to *Config) {
	to.Conntrack.Timeouts, to.Conntrack.Max, to.Conntrack.NewRate = c.AllTimeouts(), c.Max, c.NewRate
	to.ZoneMax, to.Zones = c.ZoneMax, c.Zones
}

// Duration is a time in its text form: 90s, 24h.
type Duration time.Duration

// MarshalText is the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
