package agent

import (
	"time"
)

// AFXDP is how cards are driven by ports on AF_XDP: a pod's port that is no veth, and
// the tunnel's on its uplink. Veths, VLANs and bonds have none of it.
type AFXDP struct {
	// ZeroCopy has cards receive into the switch's memory, and send from it. A card
	// whose driver cannot is refused. false when not given.
	ZeroCopy bool `json:"zeroCopy,omitempty"`
	// BusyPoll has workers drive cards themselves, in place of interrupts: it is how
	// long a call may go on asking one for frames, whole microseconds, a second at
	// most. None when not given.
	BusyPoll Duration `json:"busyPoll,omitzero"`
	// BusyPollBudget is the most frames that such a call takes off the card, 1 to
	// 65535; the kernel's 8 when not given.
	BusyPollBudget int `json:"busyPollBudget,omitempty"`
}

func (c *AFXDP) check(f *faults) {
	d := time.Duration(c.BusyPoll)
	f.check(d >= 0 && d <= time.Second && d%time.Microsecond == 0, "afxdp.busyPoll: %v is not whole microseconds up to a second", d)
	f.check(c.BusyPollBudget >= 0 && c.BusyPollBudget <= 65535, "afxdp.busyPollBudget: %d is not between 1 and 65535", c.BusyPollBudget)
	f.check(c.BusyPollBudget == 0 || d != 0, "afxdp.busyPollBudget: %d, without busyPoll", c.BusyPollBudget)
}
