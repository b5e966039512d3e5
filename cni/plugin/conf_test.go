package plugin

import (
	"errors"
	"testing"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// TestCall reads a runtime's environment and configuration.
func TestCall(t *testing.T) {
	c, err := newCall(&skel.CmdArgs{
		ContainerID: "box", Netns: "/run/netns/x", IfName: "eth0",
		Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web;K8S_POD_UID=u1;K8S_POD_INFRA_CONTAINER_ID=box",
		StdinData: []byte(`{"cniVersion":"1.1.0","name":"antrail","type":"antrail-cni","ipam":{"type":"host-local"},
			"runtimeConfig":{"bandwidth":{"egressRate":80000,"egressBurst":160000}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := cni.Pod{Namespace: "ns", Name: "web", UID: "u1"}
	q := c.request
	if q.Pod != want || q.Container != "box" || q.Interface != "eth0" || q.Netns != "/run/netns/x" || q.Network != "antrail" ||
		!q.Delegated || q.Egress != (cni.Limit{Rate: 80000, Burst: 160000}) || c.Socket != DefaultSocket {
		t.Errorf("%+v, socket %s", q, c.Socket)
	}
}

// FuzzCall: any input is read, or refused with a code.
func FuzzCall(f *testing.F) {
	f.Add("K8S_POD_NAME=a", []byte(`{"cniVersion":"1.1.0","prevResult":{"cniVersion":"1.0.0","ips":[]}}`))
	f.Add("a=b;;=", []byte(`{"cniVersion":"0.1.0","prevResult":{"ip4":{}}}`))
	f.Add("IgnoreUnknown=1", []byte(`{"runtimeConfig":{"bandwidth":{"egressRate":1}}}`))
	f.Fuzz(func(t *testing.T, args string, conf []byte) {
		c, err := newCall(&skel.CmdArgs{Args: args, StdinData: conf})
		if (c == nil) == (err == nil) {
			t.Errorf("%+v, %v", c, err)
		}
		if e := (*types.Error)(nil); err != nil && (!errors.As(err, &e) || e.Code == 0) {
			t.Errorf("%v has no code", err)
		}
	})
}
