package answer

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// TestListings: each kind's table has a cell for each column, and its text has the same columns.
func TestListings(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for _, path := range []string{"/services", "/endpoints", "/pods", "/policies", "/egresses", "/trafficcontrols", "/nodes"} {
		for _, wide := range []bool{false, true} {
			l, err := n.client.List(t.Context(), path, wide)
			if err != nil {
				t.Fatal(err)
			}
			text := get(t, n.client, map[bool]string{false: path, true: path + "?wide=1"}[wide])
			heading, _, _ := strings.Cut(text, "\n")
			lines := 1
			for _, c := range l.Columns {
				if !strings.Contains(heading, c.Name) {
					t.Errorf("%s: there is no column %s in %s", path, c.Name, heading)
				}
			}
			for _, i := range l.Items {
				lines += len(i.Lines)
				for _, cells := range i.Lines {
					if len(cells) != len(l.Columns) {
						t.Errorf("%s: %d cells below %d columns: %q", path, len(cells), len(l.Columns), cells)
					}
				}
				if i.Name == "" || len(i.Record) == 0 {
					t.Errorf("%s: %+v", path, i)
				}
			}
			if got := strings.Count(text, "\n"); got != lines || lines == 1 {
				t.Errorf("%s: the text has %d lines, the table %d", path, got, lines)
			}
		}
	}
	l, err := n.client.List(t.Context(), "/pods", false)
	if err != nil || l.Items[0].Labels["app"] == "" {
		t.Errorf("Pods have no labels: %v, %+v", err, l.Items)
	}
	if _, err := n.client.List(t.Context(), "/tables", false); err == nil || !strings.Contains(err.Error(), "format=table is for objects") {
		t.Errorf("a table of tables: %v", err)
	}
}

// TestEndpointHits: an endpoint has as many hits as connections chose it.
func TestEndpointHits(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	const connections = 20
	for i := range connections {
		n.send(t, nodeClient, packettest.TCP4(packettest.Options{
			EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, EthDst: [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0},
			Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.105.31.235"), SrcPort: uint16(40000 + i),
		}), packet.Tunnel{}, nodeWeb)
	}
	var all []api.EndpointsRecord
	if err := n.client.JSON(t.Context(), "/endpoints", nil, &all); err != nil {
		t.Fatal(err)
	}
	hits, here := uint64(0), false
	for _, s := range all {
		for _, e := range s.Endpoints {
			if s.Object != "Service/default/sample-clusterip" {
				if e.Hits != 0 {
					t.Errorf("%s: %+v", s.Object, e)
				}
				continue
			}
			hits += e.Hits
			here = here || e.Local && e.Pod == "default/web-a" && e.Address.Addr().String() == "10.10.0.24"
			if e.Weight != 100 || e.State != "serving" || len(e.GroupIDs) != 1 || e.Port != "80/TCP" {
				t.Errorf("%+v", e)
			}
		}
	}
	if hits != connections || !here {
		t.Errorf("%d hits of %d connections; web-a is among them: %v\n%+v", hits, connections, here, all)
	}
	if text := get(t, n.client, "/services?wide=1"); !strings.Contains(text, "default/web-a") {
		t.Errorf("no endpoint in\n%s", text)
	}
}
