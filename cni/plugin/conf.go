package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// DefaultSocket is the socket of an agent whose configuration names none.
const DefaultSocket = "/run/antrail/agent.sock"

// conf is a network configuration.
type conf struct {
	types.PluginConf
	// Socket is the agent's socket, DefaultSocket if empty.
	Socket string `json:"socket,omitempty"`
	// Attach is layer2 or layer3, layer2 if empty.
	Attach string `json:"attach,omitempty"`
	// RuntimeConfig are the runtime's values for a Pod, by the capabilities that the
	// configuration declares.
	RuntimeConfig struct {
		Bandwidth bandwidth `json:"bandwidth,omitzero"`
	} `json:"runtimeConfig,omitzero"`
}

// bandwidth is the capability of that name, in bits a second and bits. The `bandwidth`
// plugin limits what a Pod receives. It does not see what the Pod sends, because the switch
// takes that first.
type bandwidth struct {
	EgressRate  uint64 `json:"egressRate,omitempty"`
	EgressBurst uint64 `json:"egressBurst,omitempty"`
}

// limit is the limit for what a Pod sends. A rate needs a burst of at least one frame,
// otherwise no packet would pass.
func (b bandwidth) limit() (cni.Limit, error) {
	if b.EgressRate > 0 && b.EgressBurst < 8*2000 { // a frame of 2000 bytes
		return cni.Limit{}, types.NewError(types.ErrInvalidNetworkConfig, "bandwidth: egressBurst is too small",
			fmt.Sprintf("it is %d bits, a frame needs %d", b.EgressBurst, 8*2000))
	}
	return cni.Limit{Rate: b.EgressRate, Burst: b.EgressBurst}, nil
}

// parse reads a configuration as a runtime gives it.
func (c *conf) parse(text []byte) error {
	if err := json.Unmarshal(text, c); err != nil {
		return cni.Errorf(types.ErrDecodingFailure, "the network configuration cannot be read", err)
	}
	c.Socket = cmp.Or(c.Socket, DefaultSocket)
	if c.Attach != "" && c.Attach != cni.AttachSwitched && c.Attach != cni.AttachRouted {
		return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("attach: %q is neither %s nor %s", c.Attach, cni.AttachSwitched, cni.AttachRouted), "")
	}
	if c.RawPrevResult == nil {
		return nil
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return cni.Errorf(types.ErrDecodingFailure, "the network configuration's prevResult cannot be read", err)
	}
	return nil
}

// delegated says whether an IPAM plugin gives the addresses.
func (c *conf) delegated() bool { return c.IPAM.Type != "" }

// podArgs are the variables of CNI_ARGS that a Kubernetes runtime sets. The field names are
// the variables' names.
type podArgs struct {
	types.CommonArgs
	K8S_POD_NAMESPACE          types.UnmarshallableString
	K8S_POD_NAME               types.UnmarshallableString
	K8S_POD_UID                types.UnmarshallableString
	K8S_POD_INFRA_CONTAINER_ID types.UnmarshallableString
}

// podOf reads CNI_ARGS, NAME=VALUE pairs separated by semicolons.
func podOf(text string) (cni.Pod, error) {
	args := podArgs{}
	if err := types.LoadArgs(text, &args); err != nil {
		return cni.Pod{}, cni.Errorf(types.ErrInvalidEnvironmentVariables, "CNI_ARGS cannot be read", err)
	}
	return cni.Pod{
		Namespace: string(args.K8S_POD_NAMESPACE), Name: string(args.K8S_POD_NAME), UID: string(args.K8S_POD_UID),
	}, nil
}
