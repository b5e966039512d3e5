package demo

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/lab"
)

// TestRepliesOfAnEgress: in hybrid mode, pods leave by the other Node's Egress over an
// underlay that passes nothing between Nodes that says to come from elsewhere: the
// answers come back through the tunnel that the requests took.
func TestRepliesOfAnEgress(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) {
		w := worldOf(t, lab.Options{EncapMode: "hybrid"})
		wantRepliesByTunnel(t, w, "ip", "10.10.0.0/16")
	})
	t.Run("pipeline v2", func(t *testing.T) {
		w := worldOf(t, lab.Options{EncapMode: "hybrid", Manifests: pipelineV2(t, "trafficEncapMode: hybrid\n  transportCIDRs: [192.168.77.0/24, 'fd00:77::/64']")})
		wantRepliesByTunnel(t, w, "ip", "10.10.0.0/16")
	})
	t.Run("IPv6", func(t *testing.T) {
		const mode = "trafficEncapMode: hybrid\n  transportCIDRs: [192.168.77.0/24, 'fd00:77::/64']\n  "
		w := worldOf(t, lab.Options{EncapMode: "hybrid", IPv6Underlay: true, Manifests: exampleAnd(t, map[string]*strings.Replacer{
			"node-a.yaml": strings.NewReplacer("transportIPs: [192.168.77.102]", mode+"transportIPs: ['fd00:77::102']"),
			"node-b.yaml": strings.NewReplacer("transportIPs: [192.168.77.103]", mode+"transportIPs: ['fd00:77::103']"),
			"egress-trafficcontrol.yaml": strings.NewReplacer(
				egressOfWeb.V4, "'"+egressOfWeb.V6+"'", egressOfClients.V4, "'"+egressOfClients.V6+"'"),
		}, "")})
		wantRepliesByTunnel(t, w.ipv6(), "ip6", "fd00:10:10::/56")
	})
}

// pipelineV2 is the example with the entries of Antrea v2, and with more lines in the
// NodeConfigs.
func pipelineV2(t *testing.T, more string) (dir string) {
	t.Helper()
	change := strings.NewReplacer("  packetInRate:", "  pipeline: v2\n  "+more+"\n  packetInRate:")
	return exampleAnd(t, map[string]*strings.Replacer{"node-a.yaml": change, "node-b.yaml": change}, "")
}

// worldOf is the world of a lab that goes when the test ends.
func worldOf(t *testing.T, o lab.Options) *world {
	t.Helper()
	w, err := newWorld(upWith(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// wantRepliesByTunnel runs the check of Egresses, and wants no packet between the
// outside host and a pod on a Node's card. family is "ip" or "ip6".
func wantRepliesByTunnel(t *testing.T, w *world, family, pods string) {
	t.Helper()
	nft := func(node string, args ...string) string {
		var out []byte
		err := w.lab.In(node, func() (err error) {
			if out, err = exec.Command("nft", args...).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const strangers = `table %[1]s underlay { chain in { type filter hook prerouting priority raw; iifname eth0 %[1]s saddr %[2]s %[1]s daddr %[3]s counter drop; }; }`
	for _, node := range []string{"node-a", "node-b"} {
		nft(node, fmt.Sprintf(strangers, family, w.addresses["outside"], pods))
	}
	if _, err := egress(t.Context(), w); err != nil {
		t.Error(err)
	}
	for _, node := range []string{"node-a", "node-b"} {
		if rules := nft(node, "list", "table", family, "underlay"); !strings.Contains(rules, "counter packets 0 ") {
			t.Errorf("%s: answers came past the tunnel:\n%s", node, rules)
		}
	}
}
