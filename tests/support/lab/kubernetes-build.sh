#!/bin/sh
# Build the programs of a Kubernetes cluster from Debian's source package, once per machine.
#   kubernetes-build.sh FOLDER
# Debian packages the client only; its source has every dependency in it. Takes about ten minutes.
set -eu
target=$1
work=$(mktemp -d "${target%/*}/.kubernetes.XXXXXX")
# Go leaves folders that cannot be written to.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
log=$work/log

# Lists of sources of our own: most machines have those of packages only.
apt_in() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User=root "$@"
}

fetch() {
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    mkdir -p "$work/lists/partial" "$work/source"
    echo "deb-src $mirror bookworm main" > "$work/sources.list"
    apt_in update
    cd "$work/source"
    apt_in source --download-only kubernetes
    dpkg-source --no-check --extract ./*.dsc "$GOPATH/src/k8s.io/kubernetes"
    cd "$GOPATH/src/k8s.io/kubernetes"
}

# A container of this machine may not be allowed to protect a process from the kernel's OOM killer,
# which is all that these numbers do.
patch_scores() {
    sed -i -E 's/(defaultSandboxOOMAdj int = )-998/\10/' pkg/kubelet/dockershim/*.go
    sed -i -E 's/(guaranteedOOMScoreAdj int = )-997/\10/' pkg/kubelet/qos/policy.go
    ! grep -rE '(defaultSandboxOOMAdj|guaranteedOOMScoreAdj) int = -' pkg/kubelet
}

# The server refuses to start without descriptions of its types, which are not part of the source.
describe_types() {
    vendor=k8s.io/kubernetes/vendor
    go build -o "$work/openapi-gen" $vendor/k8s.io/kube-openapi/cmd/openapi-gen
    described=$(grep -rlE --include=doc.go --include=types.go --include=register.go \
        '^// \+k8s:openapi-gen=true' staging/src/k8s.io pkg cmd |
        grep -vE '/(testdata|_examples|sample-|code-generator|examples)' |
        sed -E "s|/[^/]*$||; s|^staging/src/|$vendor/|; s|^(pkg\|cmd)/|k8s.io/kubernetes/&|" |
        sort -u | paste -sd,)
    "$work/openapi-gen" -i "$described,$(shared)" -p k8s.io/kubernetes/pkg/generated/openapi \
        -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt -r /dev/null
}

shared() {
    for each in version runtime api/resource util/intstr; do
        printf '%s/k8s.io/apimachinery/pkg/%s\n' "$vendor" "$each"
    done | paste -sd,
}

build() {
    version=k8s.io/component-base/version
    flags="-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20"
    for each in kube-apiserver kube-scheduler kubelet; do
        go build -ldflags "$flags" -o "$work/bin/$each" "k8s.io/kubernetes/cmd/$each"
    done
}

export GOPATH="$work/go" GOCACHE="$work/cache" GO111MODULE=off CGO_ENABLED=0 GOFLAGS=
mkdir -p "$GOPATH/src/k8s.io" "$work/bin"
for step in fetch patch_scores describe_types build; do
    echo "$step $(date +%T)" >> "$log"
    $step >> "$log" 2>&1 || { tail -n 5 "$log" >&2; exit 1; }
done
mv "$work/bin" "$target"
