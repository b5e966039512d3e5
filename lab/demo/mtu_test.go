package demo

import (
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
)

// sinkService leads to a pod of the other Node.
const sinkService = `
apiVersion: v1
kind: Service
metadata: {name: sink, namespace: default}
spec:
  selector: {pod: client-b}
  type: NodePort
  ipFamilyPolicy: PreferDualStack
  clusterIP: 10.96.7.8
  clusterIPs: [10.96.7.8, "fd00:10:96::78"]
  ports: [{protocol: TCP, port: 80, targetPort: 5001, nodePort: 30099}]
`

// TestNarrowUnderlay lowers the MTU of the underlay below that of the pods. TCP still works
// in both families, for pods, the Node and the outside host, directly and to a Service,
// because senders get an ICMP error. Datagrams that may be fragmented arrive.
func TestNarrowUnderlay(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lab.Options{"geneve": {}, "gre": {Tunnel: "gre"}, "afxdp": {TunnelDriver: config.DriverAFXDP}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testNarrowUnderlay(t, o)
		})
	}
}

func testNarrowUnderlay(t *testing.T, o lab.Options) {
	o.Manifests = exampleAnd(t, nil, sinkService)
	w, err := newWorld(upWith(t, o))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, name := range []string{"node-a", "node-b", "outside"} {
		if err := w.lab.In(name, func() error {
			eth0, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetMTU(eth0, 1350)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.echo(t.Context(), "client-a", "client-b:5001", longDatagram, longDatagram); err != nil {
		t.Errorf("fragments: %v", err)
	}
	for _, way := range []struct {
		w        *world
		from, to string
	}{
		{w, "client-a", w.sink("client-b")}, {w, "client-a", "10.96.7.8:80"}, {w, "node-a", w.sink("client-b")},
		{w, "outside", "192.168.77.102:30099"},
		{w.ipv6(), "client-a", w.sink("client-b")}, {w.ipv6(), "client-a", "[fd00:10:96::78]:80"}, {w.ipv6(), "node-a", w.sink("client-b")},
		{w.ipv6(), "outside", "[fd00:77::102]:30099"},
	} {
		before := tooLong(t, w)
		if _, err := way.w.transfer(t.Context(), way.from, way.to, 4*megabyte); err != nil {
			t.Errorf("%s to %s, IPv6 %v: %v", way.from, way.to, way.w.v6, err)
		}
		if tooLong(t, w) == before {
			t.Errorf("%s to %s, IPv6 %v: nothing was too long", way.from, way.to, way.w.v6)
		}
	}
}

// tooLong is how many packets were too long for node-a's tunnel.
func tooLong(t *testing.T, w *world) (n uint64) {
	t.Helper()
	var all []api.PortRecord
	if err := w.agent("node-a").JSON(t.Context(), "/ports", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Driver == "underlay" || p.Driver == "uplink" {
			n += p.Reasons[ports.TxTooLong.String()]
		}
	}
	return n
}
