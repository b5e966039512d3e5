package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Settings are the settings of a switch process, as JSON. An agent has the same keys in its
// configuration.
type Settings struct {
	// Workers is the number of goroutines that move packets; 0 is one for each processor.
	Workers   int       `json:"workers,omitempty"`
	Conntrack Conntrack `json:"conntrack,omitzero"`
	// ConnectionCache enables the flow cache; the default is true.
	ConnectionCache *bool `json:"connectionCache,omitempty"`
	// Offload is auto (the default), where the kernel forwards established connections if it can,
	// or off.
	Offload string `json:"offload,omitempty"`
	// KeepAwake keeps idle processors awake while ports are active.
	KeepAwake bool  `json:"keepAwake,omitempty"`
	AFXDP     AFXDP `json:"afxdp,omitzero"`
	// SharedPorts are ports with many senders behind them: a gateway, a tunnel.
	SharedPorts []uint32 `json:"sharedPorts,omitempty"`
	// Owner is the owner in the alias of taps, by which the next process finds them.
	Owner string `json:"owner,omitempty"`
	// Pod is the pod of the process, if an agent of the same pod launches it.
	Pod string `json:"pod,omitempty"`
}

// GoesOnAs returns why a confined switch with other settings cannot continue with this one's
// ports, which were opened by this one's settings.
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

// ReadSettings reads a file of settings. The error names the file, and the unknown or wrong key.
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

// check returns an error for each setting that is out of its range.
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

// The values of Offload.
const (
	OffloadAuto = "auto" // where the kernel can
	OffloadOff  = "off"
)

// KnownOffload reports whether a value of Offload exists.
func KnownOffload(offload string) bool { return offload == OffloadAuto || offload == OffloadOff }

// AFXDP configures ports on AF_XDP that use cards: a pod's port that is not a veth, and the
// tunnel's on its uplink. It does not affect veths, VLANs and bonds.
type AFXDP struct {
	// ZeroCopy lets cards receive into the switch's memory, and send from it. A card whose driver
	// cannot do so is refused.
	ZeroCopy bool `json:"zeroCopy,omitempty"`
	// BusyPoll lets workers drive cards themselves, instead of interrupts. It is how long a call
	// polls a card for frames: whole microseconds, a second at most.
	BusyPoll Duration `json:"busyPoll,omitzero" default:"none"`
	// BusyPollBudget is the most frames that a call takes from the card, 1 to 65535.
	BusyPollBudget int `json:"busyPollBudget,omitempty" unit:"frames" default:"the kernel's 8"`
}

// Check calls fault for each value, with whether it is valid and the message if it is not.
func (c *AFXDP) Check(fault func(ok bool, format string, args ...any)) {
	d := time.Duration(c.BusyPoll)
	fault(d >= 0 && d <= time.Second && d%time.Microsecond == 0, "afxdp.busyPoll: %v is not whole microseconds up to a second", d)
	fault(c.BusyPollBudget >= 0 && c.BusyPollBudget <= 65535, "afxdp.busyPollBudget: %d is not between 1 and 65535", c.BusyPollBudget)
	fault(c.BusyPollBudget == 0 || d != 0, "afxdp.busyPollBudget: %d, without busyPoll", c.BusyPollBudget)
}
