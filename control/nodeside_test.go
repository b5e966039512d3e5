package control

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
)

// nodeSideOf is the NodeSide that the seed's objects need on a Node, after some edits.
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
		t.Errorf("the switch wants of the Node\n%s, want\n%s", got, want)
	}
	if first := r.NodeSide(); r.NodeSide() != first {
		t.Error("another pointer although nothing changed")
	}
}

// TestNodeSideFollowsTheSwitch: parts that leave the switch want nothing of the Node.
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
		t.Errorf("without Services and Egresses the switch wants %+v of the Node", *got)
	}
	if err := r.Update(full, nil); err != nil {
		t.Fatal(err)
	}
	if again := r.NodeSide(); !again.Same(before) {
		t.Errorf("after they came back: %+v, before %+v", *again, *before)
	}
}
