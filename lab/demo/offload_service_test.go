package demo

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
)

// bulkService is a Service whose only endpoint is the receiver's sink, at another
// port.
const bulkService = `
apiVersion: v1
kind: Service
metadata: {name: bulk, namespace: default}
spec: {selector: {pod: client-a}, ipFamilyPolicy: PreferDualStack, clusterIP: 10.96.0.77, clusterIPs: [10.96.0.77, "fd00:10:96::77"], ports: [{protocol: TCP, port: 9000, targetPort: 5001}]}
`

var bulkAddress = lab.Dual[string]{V4: "10.96.0.77", V6: "fd00:10:96::77"}

const bulkPort = 9000

// TestOffloadRewrites moves bytes through a Service to a pod of the same Node, and from a
// pod through a Service to itself. The kernel rewrites addresses and ports of frames with
// partial checksums. The first receiver accepts partial checksums. Then the links have no
// checksum offload, so the checksums are completed on the way, and the receiver drops wrong
// ones. A pod's packets to itself pass two zones and stay in the switch.
func TestOffloadRewrites(t *testing.T) {
	w, dir := offloadLabWith(t, lab.Options{})
	if err := os.WriteFile(filepath.Join(dir, "bulk.yaml"), []byte(bulkService), 0o600); err != nil {
		t.Fatal(err)
	}
	worlds := map[string]*world{"IPv4": w, "IPv6": w.ipv6()}
	for _, family := range worlds {
		waitUntil(t, "answer of the Service", func() bool {
			g, err := family.greet(t.Context(), sender, family.bulk())
			return err == nil && g.name == receiver
		})
	}
	for _, checksums := range []string{"partial", "completed"} {
		if checksums == "completed" {
			w.completeChecksums(t)
		}
		for family, w := range worlds {
			for _, from := range []string{sender, receiver} {
				t.Run(fmt.Sprintf("%s, %s, from %s", checksums, family, from), func(t *testing.T) { w.sendToService(t, from) })
			}
		}
	}
}

// bulk is where bulkService is.
func (w *world) bulk() string { return net.JoinHostPort(bulkAddress.Of(w.v6), strconv.Itoa(bulkPort)) }

// completeChecksums turns the checksum offload of the Node's ends of the pods'
// links off.
func (w *world) completeChecksums(t *testing.T) {
	t.Helper()
	all, err := w.ports(t.Context(), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{sender, receiver} {
		if err := w.lab.In("node-a", func() error { return ports.DisableTxChecksum(all[pod].Link) }); err != nil {
			t.Fatal(err)
		}
	}
}

// sendToService transfers from a pod through bulkService. It checks that the bytes arrive
// unchanged, and pass in the kernel.
func (w *world) sendToService(t *testing.T, from string) {
	const size = 50 * megabyte
	passed := func() uint64 { // when it stands still
		last := uint64(0)
		for {
			all, err := w.ports(t.Context(), "node-a")
			if err != nil {
				t.Fatal(err)
			}
			now := all[from].Offload.Rx.Bytes
			if now == last {
				return now
			}
			last = now
			time.Sleep(100 * time.Millisecond)
		}
	}
	before := passed()
	r, err := w.transfer(t.Context(), from, w.bulk(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("SHA-256 %.12s…, %.2f Gbit/s", r.sum, r.gbits())
	n := passed() - before
	if from == receiver && n != 0 {
		t.Errorf("%d bytes of a pod to itself passed in the kernel: through two zones", n)
	}
	if from == sender && n < size*9/10 {
		t.Errorf("%d of %d bytes passed in the kernel", n, size)
	}
	w.wantTranslated(t)
}

// wantTranslated checks that there is a connection to the Service, and that it
// leads to its endpoint.
func (w *world) wantTranslated(t *testing.T) {
	t.Helper()
	var all []api.Connection
	if err := w.agent("node-a").JSON(t.Context(), "/conntrack", nil, &all); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(c api.Connection) bool {
		return c.Orig.Dst.String() == bulkAddress.Of(w.v6) && c.Orig.DstPort == bulkPort && c.Reply.Src == w.addresses[receiver] && c.Reply.SrcPort == sinkPort
	}) {
		t.Errorf("no connection was translated: %+v", all)
	}
}
