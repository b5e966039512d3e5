package answer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
)

// TestNotLearnedIsShown: a port floods the table of learned addresses, and sends from an
// address that is configured on another port. dump-ports, fdb-show and the metrics count
// the refused addresses by port and reason. They leave out ports without any.
func TestNotLearnedIsShown(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	mux := n.Routes(Registry(n.Answers))
	text := func(path string) string {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		return w.Body.String()
	}
	for _, path := range []string{"/ports", "/fdb", "/metrics"} {
		if all := text(path); strings.Contains(all, "not learned") || strings.Contains(all, "not_learned_total{") {
			t.Errorf("%s before: %s", path, all)
		}
	}
	if err := n.Switch.SecurePort(nodeClient, l2.PortSecurity{}); err != nil { // else no other source passes
		t.Fatal(err)
	}
	arp := pt.ARPRequest(pt.Options{EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, Src: pt.Addr("10.10.0.26"), Dst: pt.Addr("10.10.0.1")})
	const sent, share = 4200, 4096
	for i := range sent {
		packet.Ethernet(arp).SetSrc([6]byte{2, 0, 0, 1, byte(i >> 8), byte(i)})
		n.send(t, nodeClient, arp, packet.Tunnel{}, 0)
	}
	packet.Ethernet(arp).SetSrc([6]byte{0x36, 0x48, 0x21, 0xa2, 0x9d, 0xb4})
	for range 3 {
		n.send(t, nodeClient, arp, packet.Tunnel{}, 0)
	}
	for path, lines := range map[string][]string{
		"/ports":   {"           source MAC not learned, configured on another port: 3\n           source MAC not learned, share full: 104\n"},
		"/fdb":     {"port 36: source MAC not learned, configured on another port: 3\nport 36: source MAC not learned, share full: 104\n"},
		"/metrics": {`antrail_port_macs_not_learned_total{port="client-a",reason="configured on another port"} 3`, `antrail_port_macs_not_learned_total{port="client-a",reason="share full"} 104`},
	} {
		all := text(path)
		for _, want := range lines {
			if strings.Count(all, want) != 1 || strings.Count(all, "source MAC not learned")+strings.Count(all, "not_learned_total{") != 2 {
				t.Errorf("%s has not, once and of one port, %q:\n%.2000s", path, want, all)
			}
		}
	}
	var records []api.PortRecord
	if err := n.client.JSON(t.Context(), "/ports", nil, &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.No == nodeClient && (r.MACs.Learned != share || r.MACs.NotLearned[pipeline.MACShareFull] != sent-share || r.MACs.NotLearned[pipeline.MACElsewhere] != 3) {
			t.Errorf("dump-ports -o json: %+v", r.MACs)
		}
	}
}
