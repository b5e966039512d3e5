package control

import (
	"net/netip"
	"testing"
)

// TestNoPodOffersOthers has names that were typed wrong, and what is offered.
func TestNoPodOffersOthers(t *testing.T) {
	v := &view{Cluster: &Cluster{Pods: map[Key]*Pod{}}}
	for _, n := range []Name{{"default", "web-0"}, {"default", "web-1"}, {"default", "client"}, {"shop", "db"}, {"shop", "cart-7d9f-a"}, {"shop", "cart-7d9f-b"}, {"shop", "cart-7d9f-c"}, {"shop", "cart-7d9f-d"}} {
		key := Key{KindPod, n.Namespace, n.Name}
		v.Pods[key] = &Pod{Meta: Meta{Key: key}, IPs: []netip.Addr{netip.MustParseAddr("10.10.0.9")}}
	}
	gone := Key{KindPod, "default", "dc"}
	v.Pods[gone] = &Pod{Meta: Meta{Key: gone}}
	for typed, want := range map[Name]string{
		{"default", "web"}:         "there is no Pod default/web with an address; there is default/web-0, default/web-1",
		{"default", "wep-0"}:       "there is no Pod default/wep-0 with an address; there is default/web-0, default/web-1",
		{"default", "cleint"}:      "there is no Pod default/cleint with an address; there is default/client",
		{"default", "db"}:          "there is no Pod default/db with an address; there is shop/db",
		{"shop", "cart"}:           "there is no Pod shop/cart with an address; there is shop/cart-7d9f-a, shop/cart-7d9f-b, shop/cart-7d9f-c, 1 more",
		{"elsewhere", "something"}: "there is no Pod elsewhere/something with an address",
	} {
		if err := v.noPod(typed); err.Error() != want {
			t.Errorf("%v: %v, want %q", typed, err, want)
		}
	}
}
