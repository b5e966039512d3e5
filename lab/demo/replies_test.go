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
	w, err := newWorld(upWith(t, lab.Options{EncapMode: "hybrid"}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	nft := func(node string, args ...string) string {
		var out []byte
		err := w.in(node, func() (err error) {
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
	const strangers = `table ip underlay { chain in { type filter hook prerouting priority raw; iifname eth0 ip saddr %s ip daddr 10.10.0.0/16 counter drop; }; }`
	for _, node := range []string{"node-a", "node-b"} {
		nft(node, fmt.Sprintf(strangers, w.addresses["outside"]))
	}
	if _, err := egress(t.Context(), w); err != nil {
		t.Error(err)
	}
	for _, node := range []string{"node-a", "node-b"} {
		if rules := nft(node, "list", "table", "ip", "underlay"); !strings.Contains(rules, "counter packets 0 ") {
			t.Errorf("%s: answers came past the tunnel:\n%s", node, rules)
		}
	}
}
