package pipeline

import (
	"strings"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// LossReason is a reason to lose a packet, anywhere on its way.
type LossReason struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// refusalReasons are what becomes of packets that entries send to the agent in place of dropping
// them.
var refusalReasons = map[packetin.Refusal]LossReason{
	packetin.Rejected:   {"rejected", "A policy's rule rejects it; the switch answers in the destination's name."},
	packetin.NoEndpoint: {"no_endpoint", "The Service has no endpoint; the switch refuses in its name."},
	packetin.Logged:     {"dropped_and_logged", "A policy drops it and logs what it drops; the agent has written it down."},
}

// LossReasons is the closed list of all reasons: those of the pipeline, those for
// which the agent refuses, and those of ports.
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

// portLoss is the reason of a port that says it in words: "tx ring full".
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
