package manifest

import (
	gojson "encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Antrea's objects as published: the fields of crd.antrea.io/v1beta1 and v1alpha2 under their names.
// A status is not read, except the part of an Egress that is in force.

// ignored is a part of an object that may have any content.
type ignored = gojson.RawMessage

// objectManifest is what each object has beside its spec.
type objectManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

type antreaPolicyManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Tier      string              `json:"tier"`
		Priority  *float64            `json:"priority"`
		AppliedTo []appliedToManifest `json:"appliedTo"`
		Ingress   []ruleManifest      `json:"ingress"`
		Egress    []ruleManifest      `json:"egress"`
	} `json:"spec"`
	Status ignored `json:"status"`
}

type appliedToManifest struct {
	PodSelector            *metav1.LabelSelector `json:"podSelector"`
	NamespaceSelector      *metav1.LabelSelector `json:"namespaceSelector"`
	ExternalEntitySelector *metav1.LabelSelector `json:"externalEntitySelector"`
	Group                  string                `json:"group"`
	ServiceAccount         *nameManifest         `json:"serviceAccount"`
	Service                *nameManifest         `json:"service"`
	NodeSelector           *metav1.LabelSelector `json:"nodeSelector"`
}

type nameManifest struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type ruleManifest struct {
	Action        *string             `json:"action"`
	Ports         []portManifest      `json:"ports"`
	Protocols     []protocolManifest  `json:"protocols"`
	L7Protocols   []l7Manifest        `json:"l7Protocols"`
	From          []peerManifest      `json:"from"`
	To            []peerManifest      `json:"to"`
	ToServices    []serviceManifest   `json:"toServices"`
	Name          string              `json:"name"`
	EnableLogging bool                `json:"enableLogging"`
	LogLabel      string              `json:"logLabel"`
	AppliedTo     []appliedToManifest `json:"appliedTo"`
}

type peerManifest struct {
	IPBlock                *ipBlockManifest      `json:"ipBlock"`
	PodSelector            *metav1.LabelSelector `json:"podSelector"`
	NamespaceSelector      *metav1.LabelSelector `json:"namespaceSelector"`
	Namespaces             *namespacesManifest   `json:"namespaces"`
	ExternalEntitySelector *metav1.LabelSelector `json:"externalEntitySelector"`
	Group                  string                `json:"group"`
	FQDN                   string                `json:"fqdn"`
	ServiceAccount         *nameManifest         `json:"serviceAccount"`
	NodeSelector           *metav1.LabelSelector `json:"nodeSelector"`
	Scope                  string                `json:"scope"`
}

type ipBlockManifest struct {
	CIDR   string   `json:"cidr"`
	Except []string `json:"except"`
}

type namespacesManifest struct {
	Match      string   `json:"match"`
	SameLabels []string `json:"sameLabels"`
}

type serviceManifest struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Scope     string `json:"scope"`
}

type portManifest struct {
	Protocol      corev1.Protocol     `json:"protocol"`
	Port          *intstr.IntOrString `json:"port"`
	EndPort       *int32              `json:"endPort"`
	SourcePort    *int32              `json:"sourcePort"`
	SourceEndPort *int32              `json:"sourceEndPort"`
}

type protocolManifest struct {
	ICMP *struct {
		ICMPType *int32 `json:"icmpType"`
		ICMPCode *int32 `json:"icmpCode"`
	} `json:"icmp"`
	IGMP *struct {
		IGMPType     *int32 `json:"igmpType"`
		GroupAddress string `json:"groupAddress"`
	} `json:"igmp"`
}

type l7Manifest struct {
	HTTP *struct {
		Host   string `json:"host"`
		Method string `json:"method"`
		Path   string `json:"path"`
	} `json:"http"`
	TLS *struct {
		SNI string `json:"sni"`
	} `json:"tls"`
}

type tierManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Priority    *int32 `json:"priority"`
		Description string `json:"description"`
	} `json:"spec"`
}

type groupManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		PodSelector            *metav1.LabelSelector `json:"podSelector"`
		NamespaceSelector      *metav1.LabelSelector `json:"namespaceSelector"`
		ExternalEntitySelector *metav1.LabelSelector `json:"externalEntitySelector"`
		IPBlocks               []ipBlockManifest     `json:"ipBlocks"`
		ServiceReference       *nameManifest         `json:"serviceReference"`
		ChildGroups            []string              `json:"childGroups"`
	} `json:"spec"`
	Status ignored `json:"status"`
}

type externalEntityManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Endpoints []struct {
			IP   string `json:"ip"`
			Name string `json:"name"`
		} `json:"endpoints"`
		Ports []struct {
			Protocol corev1.Protocol `json:"protocol"`
			Port     int32           `json:"port"`
			Name     string          `json:"name"`
		} `json:"ports"`
		ExternalNode string `json:"externalNode"`
	} `json:"spec"`
}

type externalNodeManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Interfaces []struct {
			Name string   `json:"name"`
			IPs  []string `json:"ips"`
		} `json:"interfaces"`
	} `json:"spec"`
}

// podSetManifest is an appliedTo of Egresses and TrafficControls.
type podSetManifest struct {
	PodSelector       *metav1.LabelSelector `json:"podSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
}

type egressManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		AppliedTo       podSetManifest `json:"appliedTo"`
		EgressIP        string         `json:"egressIP"`
		EgressIPs       []string       `json:"egressIPs"`
		ExternalIPPool  string         `json:"externalIPPool"`
		ExternalIPPools []string       `json:"externalIPPools"`
		Bandwidth       *struct {
			Rate  string `json:"rate"`
			Burst string `json:"burst"`
		} `json:"bandwidth"`
	} `json:"spec"`
	Status struct {
		EgressNode string  `json:"egressNode"`
		EgressIP   string  `json:"egressIP"`
		Conditions ignored `json:"conditions"`
	} `json:"status"`
}

type externalIPPoolManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		IPRanges []struct {
			CIDR  string `json:"cidr"`
			Start string `json:"start"`
			End   string `json:"end"`
		} `json:"ipRanges"`
		SubnetInfo   *ignored             `json:"subnetInfo"` // refused
		NodeSelector metav1.LabelSelector `json:"nodeSelector"`
	} `json:"spec"`
	Status ignored `json:"status"`
}

type trafficControlManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		AppliedTo  podSetManifest       `json:"appliedTo"`
		Direction  string               `json:"direction"`
		Action     string               `json:"action"`
		TargetPort trafficPortManifest  `json:"targetPort"`
		ReturnPort *trafficPortManifest `json:"returnPort"`
	} `json:"spec"`
}

type trafficPortManifest struct {
	OVSInternal *struct {
		Name string `json:"name"`
	} `json:"ovsInternal"`
	Device *struct {
		Name string `json:"name"`
	} `json:"device"`
	GENEVE *udpTunnelManifest `json:"geneve"`
	VXLAN  *udpTunnelManifest `json:"vxlan"`
	GRE    *struct {
		RemoteIP string `json:"remoteIP"`
		Key      *int32 `json:"key"`
	} `json:"gre"`
	ERSPAN *erspanManifest `json:"erspan"`
}

type udpTunnelManifest struct {
	RemoteIP        string `json:"remoteIP"`
	VNI             *int32 `json:"vni"`
	DestinationPort *int32 `json:"destinationPort"`
}

type erspanManifest struct {
	RemoteIP   string `json:"remoteIP"`
	SessionID  *int32 `json:"sessionID"`
	Version    int32  `json:"version"`
	Index      *int32 `json:"index"`
	Dir        *int32 `json:"dir"`
	HardwareID *int32 `json:"hardwareID"`
}
