package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/lab"
	"golang.org/x/sys/unix"
)

// refusing rejects TCP 8080 and UDP 53 at the web pods, and has a Service for
// each of them.
const refusing = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: refuse}
spec:
  priority: 1
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - name: NoDebug
      action: Reject
      ports: [{protocol: TCP, port: 8080}, {protocol: UDP, port: 53}]
      enableLogging: true
      logLabel: debug
---
apiVersion: v1
kind: Service
metadata: {name: debug-a, namespace: default}
spec:
  selector: {pod: web-a}
  clusterIP: 10.96.0.81
  ports: [{name: debug, protocol: TCP, port: 80, targetPort: 8080}, {name: dns, protocol: UDP, port: 53}]
---
apiVersion: v1
kind: Service
metadata: {name: debug-b, namespace: default}
spec:
  selector: {pod: web-b}
  clusterIP: 10.96.1.81
  ports: [{name: debug, protocol: TCP, port: 80, targetPort: 8080}, {name: dns, protocol: UDP, port: 53}]
`

// TestPolicyRefusesAndLogs: rejected connections are refused at once, to pods of the same
// Node and of another, directly and by a Service. Log and counters agree. Drops by
// isolation are logged, because the Namespace asks for it.
func TestPolicyRefusesAndLogs(t *testing.T) {
	w := newRefusingWorld(t)
	defer w.close()
	targets := map[string][]string{ // by the Node that refuses
		"node-a": {"web-a:8080", "10.96.0.81:80"},
		"node-b": {"web-b:8080", "10.96.1.81:80"},
	}
	for node, all := range targets {
		for _, to := range all {
			w.wantRefused(t, "client-a", to)
			w.wantProhibited(t, "client-a", strings.Split(to, ":")[0]+":53")
		}
		// A slow machine may have sent a SYN again: the log and the counter say so alike.
		var rule policy.RuleRow
		lines := w.waitLog(t, node, func(l *packetin.AuditLine) bool { return l.Rule == "NoDebug" }, func(n int) bool {
			rule = w.rule(t, node, "refuse", "NoDebug")
			return n >= 2*len(all) && rule.Sessions == uint64(n)
		})
		if rule.Sessions != rule.Packets || rule.State != ledger.Installed {
			t.Errorf("%s counts %+v", node, rule)
		}
		for _, l := range lines {
			pod := "default/web-" + strings.TrimPrefix(node, "node-")
			if l.Policy != "ClusterNetworkPolicy/refuse" || l.Pod != pod || l.Action != cluster.ActionReject || l.Label != "debug" ||
				l.Source != w.addresses["client-a"] {
				t.Errorf("%s logs %+v", node, l)
			}
		}
	}
	w.wantRefused(t, "node-a", "web-b:8080")
	w.wantRefused(t, "client-b", "web-a:8080")

	if err := w.wantSilence(t.Context(), attempt{"client-a", "db-a:5432"}); err != nil {
		t.Error(err)
	}
	isolated := func(l *packetin.AuditLine) bool { return l.Table == "IngressDefaultRule" && l.DestinationPort == 5432 }
	for _, l := range w.waitLog(t, "node-a", isolated, func(n int) bool { return n > 0 }) {
		if l.Action != cluster.ActionDrop || l.Pod != "default/db-a" || l.Policy != "NetworkPolicy" {
			t.Errorf("logged %+v", l)
		}
	}
}

// TestRejectsWithoutAgent: switches refuse what a policy rejects while no agent runs.
func TestRejectsWithoutAgent(t *testing.T) {
	l := plainLab(t)
	w := l.world(t)
	l.put(t, "refusing.yaml", strings.Replace(refusing, "      enableLogging: true\n", "", 1))
	targets := []string{"web-a:8080", "10.96.0.81:80", "web-b:8080", "10.96.1.81:80"}
	for _, to := range targets {
		waitUntil(t, "refusal by "+to, func() bool {
			c, err := w.dial(t.Context(), "client-a", to, waitAtMost)
			if err == nil {
				c.Close()
			}
			return errors.Is(err, unix.ECONNREFUSED)
		})
	}
	before := map[string]door.Answers{}
	for _, n := range l.Topology.Nodes {
		if err := l.KillAgent(n.Name); err != nil {
			t.Fatal(err)
		}
		before[n.Name] = door.Dial(l.SwitchSocket(n.Name)).Answers().Policy
	}
	for _, to := range targets {
		w.wantRefused(t, "client-a", to)
		w.wantProhibited(t, "client-a", strings.Split(to, ":")[0]+":53")
	}
	for _, n := range l.Topology.Nodes {
		a := door.Dial(l.SwitchSocket(n.Name)).Answers().Policy
		if a.Answered < before[n.Name].Answered+4 || a != (door.Answers{Answered: a.Answered}) {
			t.Errorf("%s: %+v", n.Name, a)
		}
		if err := l.RestartAgent(t.Context(), n.Name, antrail); err != nil {
			t.Fatal(err)
		}
	}
}

// newRefusingWorld is the example with refusing, and a Namespace that asks for
// the log.
func newRefusingWorld(t *testing.T) *world {
	t.Helper()
	dir := exampleAnd(t, map[string]*strings.Replacer{"cluster.yaml": strings.NewReplacer("metadata: {name: default, ",
		`metadata: {name: default, annotations: {networkpolicy.antrea.io/enable-logging: "true"}, `)}, refusing)
	w, err := newWorld(upWith(t, lab.Options{Manifests: dir}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// wantRefused wants a reset for TCP. A server listens, so none but the policy
// refuses.
func (w *world) wantRefused(t *testing.T, from, to string) {
	t.Helper()
	c, err := w.dial(t.Context(), from, to, waitAtMost)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%s to %s: %v, want connection refused", from, to, err)
	}
}

// wantProhibited wants what the kernel makes of ICMP "administratively
// prohibited" for a UDP socket: a port that is not served would be "refused".
func (w *world) wantProhibited(t *testing.T, from, to string) {
	t.Helper()
	err := w.lab.In(from, func() error {
		c, err := net.Dial("udp4", w.resolve(to))
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("a question")); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(waitAtMost))
		_, err = c.Read(make([]byte, 1))
		return err
	})
	if !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("%s to %s: %v, want host unreachable", from, to, err)
	}
}

// rule is what an agent tells of a policy's rule.
func (w *world) rule(t *testing.T, node, of, name string) policy.RuleRow {
	t.Helper()
	rule := w.findRule(t, node, of, name)
	if rule.Name == "" {
		t.Fatalf("%s has no rule %s of %s", node, name, of)
	}
	return rule
}

// findRule is rule, or an empty one if there is none.
func (w *world) findRule(t *testing.T, node, of, name string) (rule policy.RuleRow) {
	t.Helper()
	var all []struct {
		Object string           `json:"object"`
		Rules  []policy.RuleRow `json:"rules"`
	}
	if err := w.agent(node).JSON(t.Context(), "/policies", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, r := range p.Rules {
			if strings.HasSuffix(p.Object, "/"+of) && r.Name == name {
				return r
			}
		}
	}
	return rule
}

// waitLog waits until the lines of a Node's log of policies that fit stand for
// enough packets.
func (w *world) waitLog(t *testing.T, node string, fits func(*packetin.AuditLine) bool, enough func(packets int) bool) (lines []packetin.AuditLine) {
	t.Helper()
	path := filepath.Join(w.lab.Dir, fmt.Sprintf("%s.networkpolicy.log", node))
	var log []byte
	for range 100 {
		log, _ = os.ReadFile(path) // made with the first line
		n := 0
		lines = nil
		for text := range bytes.Lines(log) {
			var l packetin.AuditLine
			if err := json.Unmarshal(text, &l); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if fits(&l) {
				lines, n = append(lines, l), n+l.Packets
			}
		}
		if enough(n) {
			return lines
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: not enough packets in the log\n%s", node, log)
	return nil
}
