package cluster

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Traceflow asks for the way of a packet from a Pod to another Pod, a Service or an address.
// Exactly one of Pod, Service and Addr is given.
type Traceflow struct {
	Meta
	// UID and Version identify this state of the object. They are empty if no API server
	// gave them.
	UID, Version string
	Source       Name // a Pod
	Pod, Service Name
	Addr         netip.Addr
	Packet       TracedPacket
	Timeout      time.Duration
	Status       TraceflowStatus
}

// Destination is where the packet goes: KIND/namespace/name, or an address.
func (t *Traceflow) Destination() string {
	switch {
	case t.Pod.Name != "":
		return Key{KindPod, t.Pod.Namespace, t.Pod.Name}.String()
	case t.Service.Name != "":
		return Key{KindService, t.Service.Namespace, t.Service.Name}.String()
	}
	return t.Addr.String()
}

// TracedPacket is the packet that a Traceflow sends. The sender chooses fields that are 0,
// except TCPFlags.
type TracedPacket struct {
	IPv6             bool
	Protocol         uint8 // TCP, UDP, ICMP or ICMPv6
	TTL              uint8 // or hop limit
	DontFragment     bool
	SrcPort, DstPort uint16 // of TCP and UDP
	TCPFlags         uint8
	ICMPID, ICMPSeq  uint16
}

// TraceflowPhase is the progress of a Traceflow.
type TraceflowPhase string

// Phases of a Traceflow; empty if no controller has handled it yet.
const (
	TraceflowRunning   TraceflowPhase = "Running"
	TraceflowSucceeded TraceflowPhase = "Succeeded"
	TraceflowFailed    TraceflowPhase = "Failed"
)

// TraceflowStatus is the status of a Traceflow, with the published names of its fields
// (crd.antrea.io).
type TraceflowStatus struct {
	Phase     TraceflowPhase    `json:"phase,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	StartTime *time.Time        `json:"startTime,omitempty"`
	Tag       uint8             `json:"dataplaneTag,omitempty"`
	Results   []TraceflowResult `json:"results,omitempty"`
}

// TraceflowResult is the part of the packet's way that one Node saw.
type TraceflowResult struct {
	Node         string        `json:"node,omitempty"`
	Timestamp    int64         `json:"timestamp,omitempty"` // seconds since 1970
	Observations []Observation `json:"observations,omitempty"`
}

// Observation is one event on the packet's way.
type Observation struct {
	Component         string            `json:"component,omitempty"`
	ComponentInfo     string            `json:"componentInfo,omitempty"` // a table
	Action            ObservationAction `json:"action,omitempty"`
	Pod               string            `json:"pod,omitempty"` // namespace/name, of TranslatedDstIP
	NetworkPolicy     string            `json:"networkPolicy,omitempty"`
	NetworkPolicyRule string            `json:"networkPolicyRule,omitempty"`
	TranslatedSrcIP   string            `json:"translatedSrcIP,omitempty"`
	TranslatedDstIP   string            `json:"translatedDstIP,omitempty"`
	TunnelDstIP       string            `json:"tunnelDstIP,omitempty"`
	EgressIP          string            `json:"egressIP,omitempty"`
	Egress            string            `json:"egress,omitempty"`
	EgressNode        string            `json:"egressNode,omitempty"`
}

// End is the last action on the packet and its Node; "" if no Node saw the packet.
func (s *TraceflowStatus) End() string {
	if len(s.Results) == 0 {
		return ""
	}
	last := &s.Results[len(s.Results)-1]
	for i := range s.Results { // Nodes write in any order
		for _, o := range s.Results[i].Observations {
			if o.Action.Ends() {
				last = &s.Results[i]
			}
		}
	}
	if len(last.Observations) == 0 {
		return ""
	}
	o := &last.Observations[len(last.Observations)-1]
	text := fmt.Sprintf("%s on %s", o.Action, last.Node)
	if more := o.More(); more != "" {
		text += " (" + more + ")"
	}
	return text
}

// More is the rest of an observation in words.
func (o *Observation) More() string {
	var all []string
	for _, x := range []struct{ what, is string }{
		{"", o.NetworkPolicy}, {"rule ", o.NetworkPolicyRule}, {"to ", o.TranslatedDstIP}, {"", o.Pod}, {"from ", o.TranslatedSrcIP},
		{"tunnel to ", o.TunnelDstIP}, {"Egress ", o.Egress}, {"as ", o.EgressIP}, {"of Node ", o.EgressNode},
	} {
		if x.is != "" {
			all = append(all, x.what+x.is)
		}
	}
	return strings.Join(all, ", ")
}

// ObservationAction is what a component did with the packet.
type ObservationAction string

// Actions of observations.
const (
	ActionDelivered             ObservationAction = "Delivered"
	ActionReceived              ObservationAction = "Received"
	ActionForwarded             ObservationAction = "Forwarded"
	ActionDropped               ObservationAction = "Dropped"
	ActionRejected              ObservationAction = "Rejected"
	ActionForwardedOutOfOverlay ObservationAction = "ForwardedOutOfOverlay"
	ActionMarkedForSNAT         ObservationAction = "MarkedForSNAT"
	ActionForwardedToEgressNode ObservationAction = "ForwardedToEgressNode"
)

// Ends reports whether the packet's way ends with the action.
func (a ObservationAction) Ends() bool {
	switch a {
	case ActionDelivered, ActionDropped, ActionRejected, ActionForwardedOutOfOverlay:
		return true
	}
	return false
}
