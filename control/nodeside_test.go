package control

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
)

// nodeSideOf is what the seed's objects ask of a Node, after some were edited.
func nodeSideOf(t *testing.T, node string) (*Reconciler, *cluster.Cluster) {
	t.Helper()
	cluster, problems, err := store.LoadManifests("testdata/seed")
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	_, r, err := Offline(cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	return r, cluster
}

func TestNodeSideOfTheSeed(t *testing.T) {
	r, _ := nodeSideOf(t, "k8s-node-control-plane")
	const want = "{ServiceCIDRs:[10.96.0.0/12] NodePortAddresses:[192.168.77.102] " +
		"NodePorts:[{Proto:TCP Family:4 Port:30004}] " +
		"External:[192.168.77.150 192.168.77.151 192.168.77.200] " +
		"Egresses:[{Addr:192.168.77.112 Mark:1}] FarEgresses:[192.168.77.113] " +
		"Peers:[{Node:k8s-node-worker-1 Address:192.168.77.103 PodCIDR:10.10.1.0/24 Gateway:10.10.1.1 NextHop:invalid IP}] Pods:[] Multicast:[]}"
	if got := fmt.Sprintf("%+v", *r.NodeSide()); got != want {
		t.Errorf("the Node is asked for\n%s, want\n%s", got, want)
	}
	if first := r.NodeSide(); r.NodeSide() != first {
		t.Error("another pointer although nothing changed")
	}
}

// What goes from the switch, or is not taken by it, is not asked of the Node.
func TestNodeSideFollowsTheSwitch(t *testing.T) {
	r, full := nodeSideOf(t, "k8s-node-control-plane")
	before := r.NodeSide()
	less := *full
	less.Services, less.Egresses = nil, nil
	if err := r.Update(&less, nil); err != nil {
		t.Fatal(err)
	}
	got := r.NodeSide()
	if len(got.NodePorts)+len(got.External)+len(got.Egresses)+len(got.FarEgresses) > 0 || len(got.ServiceCIDRs) != 1 {
		t.Errorf("without Services and Egresses the Node is asked for %+v", *got)
	}
	if err := r.Update(full, nil); err != nil {
		t.Fatal(err)
	}
	if again := r.NodeSide(); !again.Same(before) {
		t.Errorf("after they came back: %+v, before %+v", *again, *before)
	}
}
