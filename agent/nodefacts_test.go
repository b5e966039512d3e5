package agent

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
)

// TestFacts: what another Node's agent kept, or somebody else wrote, is not
// believed.
func TestFacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "antrail", "node.json") // the first agent finds no directory
	n := &config.NodeFacts{Node: "node-a", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")}, Addresses: []netip.Addr{netip.MustParseAddr("192.168.77.102")}}
	if err := writeFacts(path, n); err != nil {
		t.Fatal(err)
	}
	if got, err := readFacts(path, "node-a"); err != nil || fmt.Sprint(got) != fmt.Sprint(n) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readFacts(path, "node-b"); err == nil {
		t.Error("another Node's facts are believed")
	}
	for _, bad := range []string{"", "{}", `{"node":"node-a"}`, "[", strings.Repeat(" ", maxFacts+1)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readFacts(path, "node-a"); err == nil {
			t.Errorf("%.20q is believed", bad)
		}
	}
}
