//go:build linux && !portable

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// killedNode is a Node with a pod's link, the configuration of an agent for it, and
// a directory of its own for what the agent keeps.
type killedNode struct {
	*nstest.Namespace
	dir, config, socket string
}

func newKilledNode(t *testing.T) *killedNode {
	t.Helper()
	pod, dir := nstest.New(t), t.TempDir()
	n := &killedNode{nstest.New(t), filepath.Join(dir, "run"), filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "run", "agent.sock")}
	nstest.AddVeth(t, n.Namespace, "client-a", pod, "eth0")
	n.AddAddress(t, "lo", "192.168.77.102/32")
	n.SetUp(t, "lo")
	manifests, err := filepath.Abs("examples/web-app")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`nodeName: node-a
socket: %s
manifests: %s
gateway: {mac: "ba:5e:d1:55:aa:c0", addresses: [10.10.0.1/24, "fd00:10:10::1/64"]}
tunnel: {localAddress: 192.168.77.102}
podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]
offload: auto
peers:
- {name: node-b, address: 192.168.77.103, podCIDRs: [10.10.1.0/24, "fd00:10:10:1::/64"], gateways: [10.10.1.1, "fd00:10:10:1::1"]}
`, n.socket, manifests)
	if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// antrail is a command of this program on the Node.
func (n *killedNode) antrail(args ...string) *exec.Cmd {
	c := n.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asBinary+"=1")
	return c
}

// start runs an agent until it is ready.
func (n *killedNode) start(t *testing.T) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "agent.log")) // a pipe would end with the switch, which outlives the agent
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := n.antrail("agent", "--config", n.config)
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if err := agent.EndSwitch(context.Background(), n.socket); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for client := api.NewClient(n.socket); client.Ready(ctx) != nil; time.Sleep(20 * time.Millisecond) {
		if ctx.Err() != nil {
			c.Process.Kill()
			c.Wait()
			text, err := os.ReadFile(log.Name())
			t.Fatalf("the agent is not ready: %v\n%s", err, text)
		}
	}
	return c
}

// snapshot is the Node as an operator sees it: links, addresses, routes, rules,
// neighbours that were set, nftables, sysctls, programs on links and files.
func (n *killedNode) snapshot(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, command := range []string{
		"ip -o -d link", "ip -o addr", "ip route show table all", "ip -6 route show table all", "ip rule", "ip -6 rule",
		"ip neigh show nud permanent", "nft list ruleset", "tc qdisc", "ip xfrm policy",
	} {
		words := strings.Fields(command)
		out, err := n.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		fmt.Fprintf(&b, "# %s\n%s", command, out)
	}
	n.Do(t, func() {
		for _, dir := range []string{"/proc/sys/net/ipv4", "/proc/sys/net/ipv6"} {
			filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					if text, err := os.ReadFile(path); err == nil { // some can only be written
						fmt.Fprintf(&b, "%s %s\n", path, strings.TrimSpace(string(text)))
					}
				}
				return nil
			})
		}
		links, err := netlink.LinkList()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			for _, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
				q, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: at})
				if err == nil {
					fmt.Fprintf(&b, "%s: %d programs at %v\n", l.Attrs().Name, len(q.Programs), at)
				}
			}
		}
	})
	filepath.WalkDir(filepath.Dir(n.dir), func(path string, _ fs.DirEntry, _ error) error {
		fmt.Fprintln(&b, path)
		return nil
	})
	return b.String()
}

// settled is the snapshot once addresses are not tentative any more and nothing
// moves.
func (n *killedNode) settled(t *testing.T, want string) string {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now := n.snapshot(t)
		if now == want || want == "" && now == last && !strings.Contains(now, "tentative") {
			return now
		}
		last = now
	}
	return last
}

// diffLines is what one text has and the other has not.
func diffLines(a, b string) string {
	var out strings.Builder
	for _, s := range []struct{ sign, of, without string }{{"-", a, b}, {"+", b, a}} {
		for line := range strings.Lines(s.of) {
			if !strings.Contains(s.without, line) {
				out.WriteString(s.sign + " " + line)
			}
		}
	}
	return out.String()
}

// TestUninstall: after an agent that was killed, and after one that was followed by
// another and stopped, the Node is as it was before.
func TestUninstall(t *testing.T) {
	n := newKilledNode(t)
	before := n.settled(t, "")
	run := func(args ...string) (string, error) {
		out, err := n.antrail(append(args, "--socket", n.socket)...).CombinedOutput()
		return string(out), err
	}
	first := n.start(t)
	if text, err := run("uninstall"); err == nil || !strings.Contains(text, "an agent is running: it answers at "+n.socket+"\nStop it first, or use --force") {
		t.Errorf("beside an agent that runs: %v\n%s", err, text)
	}
	if d := diffLines(before, n.snapshot(t)); !strings.Contains(d, "table inet antrail") || !strings.Contains(d, "192.168.77.112") {
		t.Errorf("the agent changed nothing:\n%s", d)
	}
	first.Process.Kill()
	first.Wait()
	n.Link(t, "antrea-gw0") // it stays
	text, err := run("uninstall")
	if err != nil || !strings.Contains(text, "removed link antrea-gw0") || !strings.Contains(text, "removed nftables table inet antrail") || !strings.Contains(text, "set /proc/sys/net/ipv4/ip_forward back to 0") {
		t.Errorf("%v\n%s", err, text)
	}
	if d := diffLines(before, n.settled(t, before)); d != "" {
		t.Errorf("after a kill and uninstall:\n%s", d)
	}

	second := n.start(t)
	second.Process.Kill()
	second.Wait()
	third := n.start(t)
	if text, err := run("uninstall", "--force"); err != nil {
		t.Errorf("--force: %v\n%s", err, text)
	}
	if err := third.Wait(); err != nil {
		t.Errorf("the agent that was told to stop: %v", err)
	}
	if d := diffLines(before, n.settled(t, before)); d != "" {
		t.Errorf("after a kill, another agent and uninstall --force:\n%s", d)
	}
	if text, err := run("uninstall", "--force"); err != nil || text != "nothing is left of the agent of "+n.socket+"\n" {
		t.Errorf("where nothing is left: %v\n%s", err, text)
	}
}
