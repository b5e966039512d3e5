package pipeline

import (
	"strings"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// LossReason is a reason to drop a packet, anywhere on its way.
type LossReason struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// refusalReasons are the reasons for packets that entries send to the agent instead of dropping
// them.
var refusalReasons = map[packetin.Refusal]LossReason{
	packetin.Rejected:   {"rejected", "A policy's rule rejects it; the switch answers in the destination's name."},
	packetin.NoEndpoint: {"no_endpoint", "The Service has no endpoint; the switch rejects in its name."},
	packetin.Logged:     {"dropped_and_logged", "A policy drops it and logs what it drops; the agent has logged it."},
}

// LossReasons lists all reasons: of the pipeline, of packets sent to the agent, and of ports.
func LossReasons() (all []LossReason) {
	for _, r := range telemetry.DropReasons() {
		all = append(all, LossReason{r.String(), r.Sentence()})
	}
	all = append(all, refusalReasons[packetin.Rejected], refusalReasons[packetin.NoEndpoint], refusalReasons[packetin.Logged])
	for _, text := range append(ports.Reasons(), tunnel.Reasons()...) {
		all = append(all, portLoss(text))
	}
	return append(all, lossLink, lossTunnel)
}

// portLoss converts a port's reason, for example "tx ring full".
func portLoss(text string) LossReason {
	switch text {
	case linkDropped:
		return lossLink
	case tunnelDropped:
		return lossTunnel
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c == '\'', c == ',':
			return -1
		}
		return '_'
	}, text)
	return LossReason{"port_" + name, "A port dropped it: " + text + "."}
}

// ReasonNames are the names of all reasons.
func ReasonNames() (all []string) {
	for _, r := range LossReasons() {
		all = append(all, r.Name)
	}
	return all
}
