package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
)

// traceflows are Traceflows of the example's Pods, with what both Nodes say of them.
var traceflows = []struct {
	name, from, to, packet string
	at                     map[string]string // by Node: phase and observations
}{
	{"near", "web-b", "pod: db-b", "transportHeader: {tcp: {dstPort: 3306}}", map[string]string{
		"node-b": "Succeeded SpoofGuard Forwarded, NetworkPolicy Forwarded AllowToDB, NetworkPolicy Forwarded K8sNetworkPolicy:default/db-from-web, Forwarding Delivered",
	}},
	{"isolated", "client-b", "pod: db-b", "transportHeader: {tcp: {dstPort: 3306}}", map[string]string{
		"node-b": "Succeeded SpoofGuard Forwarded, NetworkPolicy Dropped K8sNetworkPolicy:default/db-from-web",
	}},
	{"far", "client-b", "pod: web-a", "transportHeader: {tcp: {dstPort: 80}}", map[string]string{
		"node-b": "Succeeded SpoofGuard Forwarded, Forwarding Forwarded 192.168.77.102",
		"node-a": "Succeeded Forwarding Received, NetworkPolicy Forwarded AllowFromClient, Forwarding Forwarded, Forwarding Delivered",
	}},
	{"service", "client-a", "service: web-b-only", "transportHeader: {tcp: {dstPort: 80}}", map[string]string{
		"node-a": "Succeeded SpoofGuard Forwarded, LB Forwarded default/web-b, Forwarding Forwarded 192.168.77.103",
		"node-b": "Succeeded Forwarding Received, NetworkPolicy Forwarded AllowFromClient, Forwarding Delivered",
	}},
	{"outside", "client-b", "ip: 192.168.77.1", "ipHeader: {protocol: 17}, transportHeader: {udp: {dstPort: 53}}", map[string]string{
		"node-b": "Succeeded SpoofGuard Forwarded, Egress MarkedForSNAT egress-client, Forwarding ForwardedOutOfOverlay",
	}},
	{"egress", "client-a", "ip: 192.168.77.1", "ipHeader: {protocol: 1}", map[string]string{
		"node-a": "Succeeded SpoofGuard Forwarded, Egress ForwardedToEgressNode egress-client, Forwarding Forwarded 192.168.77.113",
		"node-b": "Succeeded Forwarding Received, Egress MarkedForSNAT egress-client, Forwarding ForwardedOutOfOverlay",
	}},
	{"denied", "web-b", "pod: client-a", "transportHeader: {tcp: {dstPort: 81}}", map[string]string{
		"node-b": "Succeeded SpoofGuard Forwarded, NetworkPolicy Dropped DropOtherOut",
	}},
	{"ipv6", "client-a", "pod: client-b", "ipv6Header: {}", map[string]string{
		"node-a": "Succeeded SpoofGuard Forwarded, Forwarding Forwarded 192.168.77.103",
		"node-b": "Succeeded Forwarding Received, Forwarding Delivered",
	}},
	{"nobody", "client-a", "service: sample-clusterip-no-ep", "transportHeader: {tcp: {dstPort: 80}}", map[string]string{
		"node-a": "Succeeded SpoofGuard Forwarded, LB Dropped",
	}},
	{"missing", "client-a", "pod: nobody", "", map[string]string{"node-a": "Failed"}},
}

// inShort is a status as the list above has it.
func inShort(s *cluster.TraceflowStatus) string {
	var all []string
	for _, r := range s.Results {
		for _, o := range r.Observations {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Component, o.Action,
				cmp.Or(o.NetworkPolicyRule, o.NetworkPolicy, o.Egress, o.Pod, o.TunnelDstIP))))
		}
	}
	return strings.TrimSpace(string(s.Phase) + " " + strings.Join(all, ", "))
}

// TestTraceflow: Traceflows among the manifests run on both Nodes. No pod gets a packet of
// them, and nothing stays in the switch.
func TestTraceflow(t *testing.T) {
	l := plainLab(t)
	w := l.world(t)
	l.put(t, "traceflows.yaml", traceflowObjects())
	comesTrue(t, "all Traceflows have ended", func() bool { return !slices.Contains(phases(t, w), cluster.TraceflowRunning) })
	for _, f := range traceflows {
		for node, want := range f.at {
			got := traceflowOn(t, w, node, f.name)
			if got == nil {
				t.Fatalf("there is no Traceflow %s on %s", f.name, node)
			}
			if inShort(got) != want {
				t.Errorf("%s on %s:\n%s\n%s\nwant %s", f.name, node, inShort(got), got.Reason, want)
			}
		}
	}
}

// phases are those of all Traceflows on both Nodes, Running for one that has none yet.
func phases(t *testing.T, w *world) (all []cluster.TraceflowPhase) {
	for _, node := range []string{"node-a", "node-b"} {
		for _, f := range traceflows {
			phase := cluster.TraceflowRunning
			if s := traceflowOn(t, w, node, f.name); s != nil {
				phase = cmp.Or(s.Phase, phase)
			}
			all = append(all, phase)
		}
	}
	return all
}

func traceflowObjects() string {
	var b strings.Builder
	for _, f := range traceflows {
		fmt.Fprintf(&b, "---\n{apiVersion: crd.antrea.io/v1beta1, kind: Traceflow, metadata: {name: %s}, spec: {source: {pod: %s, namespace: default}, destination: {%s}, packet: {%s}, timeout: 5}}\n",
			f.name, f.from, f.to, f.packet)
	}
	return b.String()
}

// traceflowOn is a Traceflow as a Node has it, nil if it has none.
func traceflowOn(t *testing.T, w *world, node, name string) *cluster.TraceflowStatus {
	t.Helper()
	var all []control.TraceflowRow
	if err := w.agent(node).JSON(t.Context(), "/traceflows", nil, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Text == "Traceflow/"+name {
			return &all[i].Trace
		}
	}
	return nil
}
