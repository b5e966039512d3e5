package control

import (
	"net/netip"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// TestNoPodOffersOthers: errors about mistyped names suggest similar ones.
func TestNoPodOffersOthers(t *testing.T) {
	v := &view{Cluster: &cluster.Cluster{Pods: map[cluster.Key]*cluster.Pod{}}}
	for _, n := range []cluster.Name{{Namespace: "default", Name: "web-0"}, {Namespace: "default", Name: "web-1"}, {Namespace: "default", Name: "client"}, {Namespace: "shop", Name: "db"}, {Namespace: "shop", Name: "cart-7d9f-a"}, {Namespace: "shop", Name: "cart-7d9f-b"}, {Namespace: "shop", Name: "cart-7d9f-c"}, {Namespace: "shop", Name: "cart-7d9f-d"}} {
		key := cluster.Key{Kind: cluster.KindPod, Namespace: n.Namespace, Name: n.Name}
		v.Pods[key] = &cluster.Pod{Meta: cluster.Meta{Key: key}, IPs: []netip.Addr{netip.MustParseAddr("10.10.0.9")}}
	}
	gone := cluster.Key{Kind: cluster.KindPod, Namespace: "default", Name: "dc"}
	v.Pods[gone] = &cluster.Pod{Meta: cluster.Meta{Key: gone}}
	for typed, want := range map[cluster.Name]string{
		{Namespace: "default", Name: "web"}:         "there is no Pod default/web with an address; there is default/web-0, default/web-1",
		{Namespace: "default", Name: "wep-0"}:       "there is no Pod default/wep-0 with an address; there is default/web-0, default/web-1",
		{Namespace: "default", Name: "cleint"}:      "there is no Pod default/cleint with an address; there is default/client",
		{Namespace: "default", Name: "db"}:          "there is no Pod default/db with an address; there is shop/db",
		{Namespace: "shop", Name: "cart"}:           "there is no Pod shop/cart with an address; there is shop/cart-7d9f-a, shop/cart-7d9f-b, shop/cart-7d9f-c, 1 more",
		{Namespace: "elsewhere", Name: "something"}: "there is no Pod elsewhere/something with an address",
	} {
		if err := v.noPod(typed); err.Error() != want {
			t.Errorf("%v: %v, want %q", typed, err, want)
		}
	}
}
