// Package cni is what the CNI plugin (cmd/antrail-cni) and a Node's agent say to
// each other over the agent's unix socket:
//
//	POST /cni/VERB   a Request as JSON; the answer is a Reply with status 200, or
//	                 with status 422 an error as the CNI specification writes it
//
// The plugin (cni/plugin) knows the runtime's side: environment, configuration,
// delegation of addresses. The agent (cni/node) knows the Node's: who has which
// address, the links, the switch.
//
// The specification: github.com/containernetworking/cni, SPEC.md, version 1.1.
package cni

import (
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Type is the plugin's name in network configurations, and that of its file.
const Type = "antrail-cni"

// Verb is what a runtime asks for; it is the last part of the path.
type Verb string

// The verbs. VERSION is answered by the plugin alone.
const (
	Add    Verb = "add"
	Del    Verb = "del"
	Check  Verb = "check"
	GC     Verb = "gc"
	Status Verb = "status"
)

// Codes of errors that the specification leaves to plugins.
const (
	// CodePodUnsuited says that a Pod has no use for a port: it is in its Node's
	// network, or of another Node.
	CodePodUnsuited uint = 100 + iota
	// CodeNoAddress says that none is left, or that the given one is taken.
	CodeNoAddress
	// CodeNotAsGiven says what is not as ADD made it (CHECK).
	CodeNotAsGiven
	// CodeNameTaken says that the sandbox has an interface of that name already.
	CodeNameTaken
	// CodeNoObjects says that the agent attaches no Pods: it runs flow files.
	CodeNoObjects
)

// Attachment names an interface of a sandbox, as the specification does.
type Attachment struct {
	Container string `json:"containerID"`
	Interface string `json:"ifname"`
}

// Pod is who an attachment is for, as CNI_ARGS tell it. UID may be empty.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Limit is a rate in bits a second, and how many bits may go at once beyond it. The
// zero value is none.
type Limit struct {
	Rate  uint64 `json:"rate"`
	Burst uint64 `json:"burst"`
}

// How a Pod is attached: on one Ethernet with the others of its Node, or alone with its router. A
// configuration says it, and a Pod's own annotation (cluster.AttachAnnotation) outranks that.
const (
	AttachSwitched = "layer2"
	AttachRouted   = "layer3"
)

// Request is what the plugin asks. What a verb has no use for is empty.
type Request struct {
	Attachment
	Netns   string `json:"netns,omitempty"`
	Network string `json:"network,omitempty"` // name of the configuration
	Pod     Pod    `json:"pod,omitzero"`
	// Delegated says that addresses are an IPAM plugin's business, and IPAM is what
	// that has given (ADD).
	Delegated bool             `json:"delegated,omitempty"`
	IPAM      *types100.Result `json:"ipam,omitempty"`
	// Routed attaches the Pod by layer 3: it shares no Ethernet with others.
	Routed bool `json:"routed,omitempty"`
	// Egress limits what the Pod sends.
	Egress Limit `json:"egress,omitzero"`
	// Previous is what ADD has given (CHECK); plugins chained after may have added
	// to it.
	Previous *types100.Result `json:"previous,omitempty"`
	// Valid are the attachments that stay (GC).
	Valid []Attachment `json:"valid,omitempty"`
}

// Reply is the answer. Result is that of ADD; nil, when the addresses are
// delegated and none were given yet.
type Reply struct {
	Result *types100.Result `json:"result,omitempty"`
}

// Errorf is an error with a code of the specification or of ours.
func Errorf(code uint, msg string, err error) *types.Error {
	e := types.NewError(code, msg, "")
	if err != nil {
		e.Details = err.Error()
	}
	return e
}
