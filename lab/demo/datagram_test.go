package demo

import (
	"testing"

	"github.com/antrail/antrail/lab"
)

// echoService is a UDP Service before the echo servers of the client pods.
const echoService = `
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: default}
spec: {selector: {app: client}, ipFamilyPolicy: PreferDualStack, clusterIP: 10.96.7.7, clusterIPs: [10.96.7.7, "fd00:10:96::77"], ports: [{protocol: UDP, port: 7, targetPort: 5001}]}
`

// TestLongDatagramsToAService sends datagrams in fragments to a UDP Service, of
// which one endpoint is local, one remote and one the asker itself: both of NAT's
// directions, in two zones for the last. Already the first datagram of each
// connection comes in fragments: all of them must find the Service and choose
// the same endpoint.
func TestLongDatagramsToAService(t *testing.T) {
	dir := exampleAnd(t, nil, echoService)
	w, err := newWorld(upWith(t, lab.Options{Manifests: dir}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, from := range []string{"db-a", "client-a", "client-b"} {
		for range 8 { // a new port each time, and so another endpoint
			if err := w.echo(t.Context(), from, "10.96.7.7:7", longDatagram, longDatagram); err != nil {
				t.Error(err)
			}
			if err := w.echo(t.Context(), from, "[fd00:10:96::77]:7", longDatagram, longDatagram); err != nil {
				t.Error(err)
			}
		}
	}
}
