package answer

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/gopackettest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// refusing are a policy that rejects in both directions, and Services whose
// endpoints it guards: one of a pod of each Node. Packets are rejected at the
// endpoint (TCP 80, UDP 53) and at the client (25).
const refusing = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: refuse}
spec:
  priority: 1
  tier: securityops
  ingress:
    - name: NoDebug
      action: Reject
      ports: [{protocol: TCP, port: 81}, {protocol: UDP, port: 53}]
      appliedTo: [{podSelector: {matchLabels: {app: web}}}]
      enableLogging: true
      logLabel: debug
  egress:
    - name: NoMail
      action: Reject
      ports: [{protocol: TCP, port: 25}, {protocol: UDP, port: 25}]
      appliedTo: [{podSelector: {matchLabels: {app: client}}}]
---
apiVersion: v1
kind: Service
metadata: {name: at-a, namespace: default}
spec:
  selector: {pod: web-a}
  type: NodePort
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  clusterIP: 10.96.0.81
  clusterIPs: [10.96.0.81, "fd00:10:96::aa"]
  ports:
    - {name: debug, protocol: TCP, port: 80, targetPort: 81, nodePort: 30081}
    - {name: dns, protocol: UDP, port: 53, targetPort: 53, nodePort: 30053}
    - {name: mail, protocol: TCP, port: 25, targetPort: 25, nodePort: 30025}
    - {name: mail-udp, protocol: UDP, port: 25, targetPort: 25, nodePort: 30025}
---
apiVersion: v1
kind: Service
metadata: {name: at-b, namespace: default}
spec:
  selector: {pod: web-b}
  type: NodePort
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4, IPv6]
  clusterIP: 10.96.1.81
  clusterIPs: [10.96.1.81, "fd00:10:96::bb"]
  ports:
    - {name: debug, protocol: TCP, port: 80, targetPort: 81, nodePort: 30181}
    - {name: dns, protocol: UDP, port: 53, targetPort: 53, nodePort: 30153}
    - {name: mail, protocol: TCP, port: 25, targetPort: 25, nodePort: 30125}
    - {name: mail-udp, protocol: UDP, port: 25, targetPort: 25, nodePort: 30125}
`

// TestRejectReachesTheClient sends what a policy rejects from everywhere to
// everywhere. The answer must come to the client, and only there, from the
// address and port that the client asked. The answers have the same bytes without a
// controller, except for rules that log: those need one.
func TestRejectReachesTheClient(t *testing.T) {
	told := map[string][]arrival{}
	t.Run("with a controller", func(t *testing.T) { rejectsEverywhere(t, newCluster(t, refusing), told) })
	t.Run("without a controller", func(t *testing.T) {
		c := newCluster(t, strings.Replace(refusing, "      enableLogging: true\n", "", 1))
		for _, n := range c.nodes {
			n.Local.SetControllerAway(true)
		}
		alone := map[string][]arrival{}
		rejectsEverywhere(t, c, alone)
		if len(told) == 0 || !reflect.DeepEqual(told, alone) {
			t.Errorf("answers with a controller:\n%v\nwithout:\n%v", told, alone)
		}
	})
}

// rejectsEverywhere does so, and notes the answers.
func rejectsEverywhere(t *testing.T, c *testCluster, answers map[string][]arrival) {
	port := uint16(2000)
	for _, s := range []struct {
		name     string
		from     string
		src, dst string // addresses
		tcp, udp uint16
		l2       string // the owner of the destination's MAC; empty: the gateway
	}{
		{"pod to pod", "client-a", "10.10.0.26", "10.10.0.24", 81, 53, "web-a"},
		{"pod to pod of another Node", "client-a", "10.10.0.26", "10.10.1.6", 81, 53, ""},
		{"pod to Service, endpoint here", "client-a", "10.10.0.26", "10.96.0.81", 80, 53, ""},
		{"pod to Service, endpoint there", "client-a", "10.10.0.26", "10.96.1.81", 80, 53, ""},
		{"Node to pod", "node-a", "10.10.0.1", "10.10.0.24", 81, 53, "web-a"},
		{"Node to pod of another Node", "node-a", "10.10.0.1", "10.10.1.6", 81, 53, ""},
		{"Node to Service, endpoint here", "node-a", "10.10.0.1", "10.96.0.81", 80, 53, ""},
		{"Node to Service, endpoint there", "node-a", "10.10.0.1", "10.96.1.81", 80, 53, ""},
		{"outside to pod", "node-a", "192.168.77.1", "10.10.0.24", 81, 53, "web-a"},
		{"outside to NodePort, endpoint here", "node-a", "192.168.77.1", "192.168.77.102", 30081, 30053, ""},
		{"outside to NodePort, endpoint there", "node-a", "192.168.77.1", "192.168.77.102", 30181, 30153, ""},
		{"pod, to pod", "client-a", "10.10.0.26", "10.10.0.24", 25, 25, "web-a"},
		{"pod, to pod of another Node", "client-a", "10.10.0.26", "10.10.1.6", 25, 25, ""},
		{"pod, to outside", "client-a", "10.10.0.26", "192.168.77.1", 25, 25, ""},
		{"pod, to Service, endpoint here", "client-a", "10.10.0.26", "10.96.0.81", 25, 25, ""},
		{"pod, to Service, endpoint there", "client-a", "10.10.0.26", "10.96.1.81", 25, 25, ""},

		{"IPv6 pod to pod", "client-a", "fd00:10:10::26", "fd00:10:10::24", 81, 53, "web-a"},
		{"IPv6 pod to pod of another Node", "client-a", "fd00:10:10::26", "fd00:10:10:1::6", 81, 53, ""},
		{"IPv6 pod to Service, endpoint here", "client-a", "fd00:10:10::26", "fd00:10:96::aa", 80, 53, ""},
		{"IPv6 pod to Service, endpoint there", "client-a", "fd00:10:10::26", "fd00:10:96::bb", 80, 53, ""},
		{"IPv6 Node to pod", "node-a", "fd00:10:10::1", "fd00:10:10::24", 81, 53, "web-a"},
		{"IPv6 Node to Service, endpoint here", "node-a", "fd00:10:10::1", "fd00:10:96::aa", 80, 53, ""},
		{"IPv6 Node to Service, endpoint there", "node-a", "fd00:10:10::1", "fd00:10:96::bb", 80, 53, ""},
		{"IPv6 pod, to outside", "client-a", "fd00:10:10::26", "2001:db8::1", 25, 25, ""},
		{"IPv6 pod, to Service, endpoint here", "client-a", "fd00:10:10::26", "fd00:10:96::aa", 25, 25, ""},
		{"IPv6 pod, to Service, endpoint there", "client-a", "fd00:10:10::26", "fd00:10:96::bb", 25, 25, ""},
	} {
		t.Run(s.name, func(t *testing.T) {
			o := packettest.Options{
				EthSrc: c.macs[s.from], EthDst: c.gateways[s.from], Seq: 1000,
				Src: netip.MustParseAddr(s.src), Dst: netip.MustParseAddr(s.dst), SrcPort: port,
			}
			port++
			if s.l2 != "" {
				o.EthDst = c.macs[s.l2]
			} else if o.EthDst == [6]byte{} {
				o.EthDst = c.macs[s.from] // the gateway's own: what the Node routes into it
			}
			tcp, udp := packettest.TCP4, packettest.UDP4
			if o.Src.Is6() {
				tcp, udp = packettest.TCP6, packettest.UDP6
			}
			o.DstPort = s.tcp
			got := c.send(s.from, tcp(o))
			wantReset(t, s.from, tcp(o), got)
			o.DstPort = s.udp
			answers[s.name] = append(got, c.send(s.from, udp(o))...)
			wantProhibited(t, s.from, udp(o), answers[s.name][len(got):])
		})
	}
	for _, n := range c.nodes {
		if r := n.Switch.Answers().Policy; r.Answered == 0 || r != (door.Answers{Answered: r.Answered}) {
			t.Errorf("%s: %+v", n.name, r)
		}
	}
}

// single wants a single frame, at the asker, that is sound and goes back.
func single(t *testing.T, at string, request []byte, got []arrival) (question, reply gopacket.Packet) {
	t.Helper()
	if len(got) != 1 || got[0].at != at {
		t.Fatalf("arrived: %v, want one answer at %s", got, at)
	}
	question, reply = gopacket.NewPacket(request, layers.LayerTypeEthernet, gopacket.Default), gopackettest.Parse(t, got[0].frame)
	if to := question.LinkLayer().LinkFlow().Src(); reply.LinkLayer().LinkFlow().Dst() != to {
		t.Errorf("the answer is for %v, want %v", reply.LinkLayer().LinkFlow().Dst(), to)
	}
	return question, reply
}

func wantReset(t *testing.T, at string, request []byte, got []arrival) {
	t.Helper()
	question, reply := single(t, at, request, got)
	if have, want := reply.NetworkLayer().NetworkFlow(), question.NetworkLayer().NetworkFlow().Reverse(); have != want {
		t.Errorf("a reset of %v, want %v", have, want)
	}
	tcp, ok := reply.TransportLayer().(*layers.TCP)
	if !ok || !tcp.RST || !tcp.ACK || tcp.Ack != 1001 {
		t.Fatalf("no reset: %v", reply)
	}
	if have, want := tcp.TransportFlow(), question.TransportLayer().TransportFlow().Reverse(); have != want {
		t.Errorf("a reset of ports %v, want %v", have, want)
	}
}

// wantProhibited wants an ICMP error whose quote the client knows as its own.
func wantProhibited(t *testing.T, at string, request []byte, got []arrival) {
	t.Helper()
	question, reply := single(t, at, request, got)
	first := gopacket.Decoder(layers.LayerTypeIPv4)
	want := [2]uint8{3, 10}
	if question.Layer(layers.LayerTypeIPv6) != nil {
		first, want = layers.LayerTypeIPv6, [2]uint8{1, 1}
	}
	typ, code, quote := gopackettest.ICMP(reply)
	if [2]uint8{typ, code} != want {
		t.Fatalf("ICMP %d/%d, want %v: %v", typ, code, want, reply)
	}
	quoted := gopacket.NewPacket(quote, first, gopacket.Default)
	if have, want := ends(quoted), ends(question); have != want {
		t.Errorf("quotes %s, want %s", have, want)
	}
	if have, want := reply.NetworkLayer().NetworkFlow(), question.NetworkLayer().NetworkFlow().Reverse(); have != want {
		t.Errorf("an error of %v, want %v", have, want)
	}
}

func ends(p gopacket.Packet) string {
	return fmt.Sprintf("%v %v", p.NetworkLayer().NetworkFlow(), p.TransportLayer().TransportFlow())
}

// ruleRows are the rules of a policy on a Node, by title.
func (n *memoryNode) ruleRows(name string) map[string]policy.RuleRow {
	rows := map[string]policy.RuleRow{}
	for _, p := range n.policies() {
		for _, r := range p.Rules {
			if p.Object.Name == name {
				rows[r.Name] = r
			}
		}
	}
	return rows
}

// TestRejectCounts counts what a rule refuses, also when the rule beside it
// changes, and what became of the answers.
func TestRejectCounts(t *testing.T) {
	c := newCluster(t, refusing)
	a := c.node("client-a")
	o := packettest.Options{
		EthSrc: c.macs["client-a"], EthDst: c.macs["web-a"], DstPort: 81,
		Src: netip.MustParseAddr("10.10.0.26"), Dst: netip.MustParseAddr("10.10.0.24"),
	}
	bytes := uint64(0)
	for i := range 5 {
		o.SrcPort = uint16(3000 + i)
		frame := packettest.TCP4(o)
		c.send("client-a", frame)
		bytes += uint64(len(frame))
	}
	want := policy.RuleCounters{Sessions: 5, Packets: 5, Bytes: bytes}
	rows := a.ruleRows("refuse")
	if got := rows["NoDebug"]; got.RuleCounters != want || got.Action != cluster.ActionReject || got.Direction != "Ingress" || got.State != ledger.Installed {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := rows["NoMail"]; got.RuleCounters != (policy.RuleCounters{}) {
		t.Errorf("%+v, want nothing", got)
	}
	if n := a.Switch.Answers().Policy.Answered; n != 5 {
		t.Errorf("%d answers, want 5", n)
	}

	for _, want := range []string{
		`antrail_rule_sessions_total{action="Reject",direction="Ingress",kind="ClusterNetworkPolicy",namespace="",policy="refuse",rule="NoDebug"} 5`,
		fmt.Sprintf(`antrail_rule_bytes_total{action="Reject",direction="Ingress",kind="ClusterNetworkPolicy",namespace="",policy="refuse",rule="NoDebug"} %d`, bytes),
		`antrail_rule_sessions_total{action="Allow",direction="Ingress",kind="NetworkPolicy",namespace="default",policy="db-from-web",rule="ingress[0]"} 0`,
		`antrail_refused_packets_total{by="policy",outcome="answered"} 5`,
	} {
		client := a.Client("")
		if text := get(t, client, "/metrics"); !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}

	o.TCPFlags = packet.TCPRst
	if got := c.send("client-a", packettest.TCP4(o)); len(got) > 0 {
		t.Errorf("a reset was answered: %v", got)
	}
}
