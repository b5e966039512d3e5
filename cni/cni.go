// Package cni is the protocol between the CNI plugin (cmd/antrail-cni) and a Node's
// agent, over the agent's unix socket:
//
//	POST /cni/VERB   a Request as JSON; the answer is a Reply with status 200, or
//	                 with status 422 an error as the CNI specification writes it
//
// The plugin (cni/plugin) knows the runtime's side: environment, configuration, IPAM
// plugins. The agent (cni/node) knows the Node's side: addresses, links and the
// switch.
//
// The specification: github.com/containernetworking/cni, SPEC.md, version 1.1.
package cni

import (
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Type is the plugin's name in network configurations, and the name of its file.
const Type = "antrail-cni"

// Verb is a request of the runtime. It is the last part of the path.
type Verb string

// The verbs. The plugin answers VERSION itself.
const (
	Add    Verb = "add"
	Del    Verb = "del"
	Check  Verb = "check"
	GC     Verb = "gc"
	Status Verb = "status"
)

// Codes of errors, from the range that the specification leaves to plugins.
const (
	// CodePodUnsuited: the Pod can have no port. It is in its Node's network, or on another
	// Node.
	CodePodUnsuited uint = 100 + iota
	// CodeNoAddress: no address is left, or another Pod has the given one.
	CodeNoAddress
	// CodeNotAsGiven: something differs from what ADD made (CHECK).
	CodeNotAsGiven
	// CodeNameTaken: the sandbox already has an interface of that name.
	CodeNameTaken
	// CodeNoObjects: the agent attaches no Pods, because it runs flow files.
	CodeNoObjects
)

// Attachment identifies an interface of a sandbox, as in the specification.
type Attachment struct {
	Container string `json:"containerID"`
	Interface string `json:"ifname"`
}

// Pod is the Pod of an attachment, from CNI_ARGS. UID may be empty.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Limit is a rate in bits a second, and the bits of a burst beyond it. The zero value
// means no limit.
type Limit struct {
	Rate  uint64 `json:"rate"`
	Burst uint64 `json:"burst"`
}

// How a Pod is attached: on one Ethernet with the other Pods of its Node, or on a link of
// its own with its router. A Pod's annotation (cluster.AttachAnnotation) outranks the
// configuration.
const (
	AttachSwitched = "layer2"
	AttachRouted   = "layer3"
)

// Request is what the plugin sends. Fields that a verb does not use are empty.
type Request struct {
	Attachment
	Netns   string `json:"netns,omitempty"`
	Network string `json:"network,omitempty"` // name of the configuration
	Pod     Pod    `json:"pod,omitzero"`
	// Delegated says that an IPAM plugin gives the addresses. IPAM is its result (ADD).
	Delegated bool             `json:"delegated,omitempty"`
	IPAM      *types100.Result `json:"ipam,omitempty"`
	// Routed attaches the Pod by layer 3: its link has no other machine on it.
	Routed bool `json:"routed,omitempty"`
	// Egress limits what the Pod sends.
	Egress Limit `json:"egress,omitzero"`
	// Previous is the result of ADD (CHECK). Plugins later in the chain may have added to
	// it.
	Previous *types100.Result `json:"previous,omitempty"`
	// Valid are the attachments that stay (GC).
	Valid []Attachment `json:"valid,omitempty"`
}

// Reply is the answer. Result is that of ADD. It is nil if addresses are delegated and the
// request had none.
type Reply struct {
	Result *types100.Result `json:"result,omitempty"`
}

// Errorf is an error with a code of the specification or of this package.
func Errorf(code uint, msg string, err error) *types.Error {
	e := types.NewError(code, msg, "")
	if err != nil {
		e.Details = err.Error()
	}
	return e
}
