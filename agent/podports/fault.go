package podports

import (
	"fmt"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// Fault is a link that takes no packets, with the reason.
type Fault struct {
	What   string // the fault as a sentence without a full stop: link web-a-1 is gone
	Reason string // the drop reason of packets to the port
	Next   string // what to do
}

// Down is the fault of a link that is down. reason is the drop reason of packets to its port.
func Down(link, reason string) Fault {
	return Fault{"link " + link + " is down", reason,
		"set the link up in the Pod, or recreate the Pod: an interface without its other end stays down"}
}

// Gone is the fault of a missing link; how says what happened to it.
func Gone(link, how string) Fault {
	return Fault{"link " + link + " " + how, telemetry.DropNoSuchPort.String(),
		"delete the Pod, so that its successor gets a link; the port opens as soon as there is a link " + link}
}

// Refused is the fault of a link that could not be opened as a port.
func Refused(link, why string) Fault {
	return Fault{fmt.Sprintf("link %s is not open: %s", link, why), telemetry.DropNoSuchPort.String(),
		"the agent tries again; its log has each error"}
}
