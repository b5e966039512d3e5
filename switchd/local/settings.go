package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Settings is what a switch process is started with, as JSON. An agent has the same keys in
// its configuration.
type Settings struct {
	// Workers is how many goroutines move packets; one for each processor when 0.
	Workers   int       `json:"workers,omitempty"`
	Conntrack Conntrack `json:"conntrack,omitzero"`
	// ConnectionCache remembers walks; true when not given.
	ConnectionCache *bool `json:"connectionCache,omitempty"`
	// Offload is auto, where the kernel forwards established connections if it can, or off;
	// auto when not given.
	Offload string `json:"offload,omitempty"`
	// KeepAwake keeps idle processors awake while ports talk.
	KeepAwake bool  `json:"keepAwake,omitempty"`
	AFXDP     AFXDP `json:"afxdp,omitzero"`
	// SharedPorts are ports behind which many senders are: a gateway, a tunnel.
	SharedPorts []uint32 `json:"sharedPorts,omitempty"`
	// Owner is who makes taps, in their alias; so the next process finds them.
	Owner string `json:"owner,omitempty"`
	// Pod is the pod of the process, if an agent of the same pod launches it.
	Pod string `json:"pod,omitempty"`
}

// GoesOnAs says why a confined switch with other settings cannot go on with the ports of
// this one: they are opened by the first.
func (s *Settings) GoesOnAs(next *Settings) error {
	switch {
	case s.offloads() != next.offloads():
		return errors.New("offload was off and is to be on, or the other way round")
	case s.AFXDP != next.AFXDP:
		return errors.New("afxdp has changed")
	}
	return nil
}

func (s *Settings) offloads() bool {
	return s.Offload != OffloadOff && (s.ConnectionCache == nil || *s.ConnectionCache)
}

// ReadSettings reads a file of settings. The error names the file, and the key that is
// unknown or wrong.
func ReadSettings(path string) (*Settings, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &Settings{}
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// check names each setting that is out of its range.
func (s *Settings) check() error {
	var errs []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(s.Workers >= 0 && s.Workers <= 64, "workers: %d is not between 1 and 64, nor 0 for one each processor", s.Workers)
	fault(slices.Contains([]string{"", OffloadAuto, OffloadOff}, s.Offload), "offload: %q is neither auto nor off", s.Offload)
	s.Conntrack.Check(fault)
	s.AFXDP.Check(fault)
	return errors.Join(errs...)
}

// What Offload may be.
const (
	OffloadAuto = "auto" // where the kernel can
	OffloadOff  = "off"
)

// KnownOffload reports whether offload can be this.
func KnownOffload(offload string) bool { return offload == OffloadAuto || offload == OffloadOff }

// AFXDP is how cards are driven by ports on AF_XDP: a pod's port that is no veth, and the
// tunnel's on its uplink. Veths, VLANs and bonds have none of it.
type AFXDP struct {
	// ZeroCopy lets cards receive into the switch's memory, and send from it. A card
	// whose driver cannot is refused.
	ZeroCopy bool `json:"zeroCopy,omitempty"`
	// BusyPoll lets workers drive cards themselves, in place of interrupts. It is how
	// long a call asks a card for frames: whole microseconds, a second at most.
	BusyPoll Duration `json:"busyPoll,omitzero" default:"none"`
	// BusyPollBudget is the most frames that such a call takes off the card, 1 to
	// 65535.
	BusyPollBudget int `json:"busyPollBudget,omitempty" unit:"frames" default:"the kernel's 8"`
}

// Check calls fault for each value, with whether it is right and what is wrong.
func (c *AFXDP) Check(fault func(ok bool, format string, args ...any)) {
	d := time.Duration(c.BusyPoll)
	fault(d >= 0 && d <= time.Second && d%time.Microsecond == 0, "afxdp.busyPoll: %v is not whole microseconds up to a second", d)
	fault(c.BusyPollBudget >= 0 && c.BusyPollBudget <= 65535, "afxdp.busyPollBudget: %d is not between 1 and 65535", c.BusyPollBudget)
	fault(c.BusyPollBudget == 0 || d != 0, "afxdp.busyPollBudget: %d, without busyPoll", c.BusyPollBudget)
}
