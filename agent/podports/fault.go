package podports

import (
	"fmt"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// Fault is a link that takes no packets, and why.
type Fault struct {
	What   string // the fault as a sentence without a full stop: link web-a-1 is gone
	Reason string // by which packets to the port are dropped
	Next   string // what to do
}

// Down is the fault of a link that is there and down. reason is by which packets to
// its port are dropped.
func Down(link, reason string) Fault {
	return Fault{"link " + link + " is down", reason,
		"set the link up in the Pod, or have the Pod made anew: an interface without its other end stays down"}
}

// Gone is the fault of a link that is not there; how says so.
func Gone(link, how string) Fault {
	return Fault{"link " + link + " " + how, telemetry.DropNoSuchPort.String(),
		"delete the Pod, so that its successor gets a link; the port opens as soon as there is a link " + link}
}

// Refused is the fault of a link that could not be opened as a port.
func Refused(link, why string) Fault {
	return Fault{fmt.Sprintf("link %s is not open: %s", link, why), telemetry.DropNoSuchPort.String(),
		"the agent tries again by itself; its log has each error"}
}
