package vppl3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Numbers of the tables.
const (
	tableACLIn = iota
	tableOut2In
	tableIn2Out
	tableSlowpath
	tableLookup
	tableRewrite
	tableACLOut
)

// Priorities. Those of acl-plugin-out-ip4-fa are in its file.
const (
	priorityMiss     = 0
	priorityNormal   = 200
	priorityLoopback = 210
)

// check returns an error for policies and endpoints of missing pods, and for links without an
// address.
func check(n *layout.Node) error {
	errs := []error{n.Check()}
	if len(n.Pods) == 0 {
		errs = append(errs, errors.New("there is no pod"))
	}
	for _, p := range n.Pods {
		if p.Link == [6]byte{} {
			errs = append(errs, fmt.Errorf("the link of %s has no address", p.Port.Name))
		}
		if isBackend(n, p.IP()) && !n.PodCIDR.Addr().Is4() {
			errs = append(errs, fmt.Errorf("%s is the endpoint of a Service, and there is no IPv4 pod range: its last address stands for a pod that asks itself", p.Port.Name))
		} else if n.PodCIDR.Addr().Is4() && p.IP() == loopback(n) {
			errs = append(errs, fmt.Errorf("%s has %v, which stands for pods that ask themselves", p.Port.Name, p.IP()))
		}
	}
	for _, p := range n.Policies {
		if !slices.ContainsFunc(n.Pods, func(pod layout.Pod) bool { return pod.IP() == p.Pod }) {
			errs = append(errs, fmt.Errorf("the policy of %v is of no pod", p.Pod))
		}
	}
	return errors.Join(errs...)
}

// entry is an entry for a statement of the document.
func entry(row, why string, table uint8, priority uint16, m flow.Match, actions ...flow.Action) layout.Entry {
	return layout.Entry{Entry: layout.NewEntry(table, priority, m, actions...), Origin: layout.Origin{Row: row, Why: why}}
}

func goTo(table uint8) flow.Action { return flow.GotoTable{Table: table} }

// outputTx sends to the port that ip4-lookup found.
func outputTx() flow.Action { return flow.OutputReg{Src: txField.Subfield} }

// isReferenced reports whether a policy names a pod: its own, or another pod's that has it as a
// client. A pod with rules about its destinations is checked at every other pod, so one such pod
// makes all referenced.
func isReferenced(n *layout.Node, ip netip.Addr) bool {
	names := func(rules *[]layout.Rule) bool {
		return rules != nil && slices.ContainsFunc(*rules, func(r layout.Rule) bool { return !r.Other.IsValid() || r.Other.Contains(ip) })
	}
	return slices.ContainsFunc(n.Policies, func(p layout.Policy) bool { return p.Pod == ip || p.Egress != nil || names(p.Ingress) })
}

// isBackend reports whether a pod is the endpoint of a Service.
func isBackend(n *layout.Node, ip netip.Addr) bool {
	return slices.ContainsFunc(n.Services, func(s layout.Service) bool { return s.Endpoint.Addr() == ip })
}

// firstNAT is the table that translates a pod's packets: a backend's as replies, others' as
// requests.
func firstNAT(n *layout.Node, ip netip.Addr) uint8 {
	if isBackend(n, ip) {
		return tableIn2Out
	}
	return tableOut2In
}

// loopback replaces the address of a pod that reaches itself by a Service: the last unicast
// address of the pods' range.
func loopback(n *layout.Node) netip.Addr {
	b, host := n.PodCIDR.Masked().Addr().As4(), uint32(1)<<(32-n.PodCIDR.Bits())-1
	last := binary.BigEndian.Uint32(b[:]) | host
	if host > 1 {
		last-- // skip the broadcast address
	}
	binary.BigEndian.PutUint32(b[:], last)
	return netip.AddrFrom4(b)
}
