/* A stand-in for the NVIDIA driver library, loaded by the real nvidia-ml-py through LD_LIBRARY_PATH.
 *
 * Settings are environment variables. A running process can be changed too: the file named by NVML_STATE_FILE, read
 * again at every call, holds lines NAME=VALUE that win over the environment. Lists are divided by '|'; a list that is
 * too short repeats its last item.
 *
 *   NVML_DEVICES=2               number of GPUs
 *   NVML_NAMES=a|b               model names               (NVIDIA H200)
 *   NVML_UUIDS=GPU-1||GPU-1      UUIDs, empty ones allowed (GPU-00000000-...-<index>)
 *   NVML_MEMORY_MIB=81920|24576  memory                    (143771)
 *   NVML_MIG=2|                  MIG instances on each GPU; "" means that MIG is off there
 *   NVML_DRIVER=570.133.20       driver version
 *   NVML_CUDA=13000              CUDA version as NVML writes it
 *   NVML_THROTTLE=5              bits of the reasons for a lower clock
 *   NVML_FAN=41                  fan speed; 4294967295 is how NVML writes "not available"
 *   NVML_PROCESSES=0|3           compute processes on each GPU
 *   NVML_FAULTS=nvmlDeviceGetFanSpeed=3,nvmlDeviceGetTemperature@2=15,*@1=999,nvmlDeviceGetMemoryInfo@0.1=4,*=999
 *                                return codes: of a function, on one device or one MIG instance (gpu.slot) only; * is
 *                                every function. The first that fits counts
 *   NVML_INIT_FAILURES=3:999     the first three attempts to initialise end with 999
 *   NVML_SLEEPS=nvmlInitWithFlags=60   seconds that a function hangs; ends early when the setting goes away
 *   NVML_BROKEN_AFTER=40         after so many calls everything ends with 999
 *   NVML_CALLS_FILE=path         a line for every attempt to initialise and every shutdown
 *
 * As the real library does, it holds a file descriptor for each initialisation that was not shut down.
 */
#include "settings.h"

static Device devices[64][17];
static int descriptors[64], initialised, attempts;

#define BEGIN(device)                                \
    do {                                             \
        int fault = begin(__func__, device);         \
        if (fault) return fault;                     \
        if (!initialised) return 1;                  \
    } while (0)

static int put(char *out, unsigned size, const char *text) {
    if (strlen(text) >= size) return 7;
    strcpy(out, text);
    return 0;
}

static int gpus(void) {
    long n = number("NVML_DEVICES", 2);
    return n < 0 ? 0 : n > 64 ? 64 : (int)n;
}

static int slots(int gpu) { return (int)item_number("NVML_MIG", gpu, 0); }

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    note("init");
    int fault = begin(__func__, NULL);
    if (fault) return fault;
    char text[64], *colon;
    setting("NVML_INIT_FAILURES", "0:0", text, sizeof text);
    if (attempts++ < atoi(text)) return (colon = strchr(text, ':')) ? atoi(colon + 1) : 999;
    if (initialised < 64) descriptors[initialised] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    initialised++;
    return 0;
}

int nvmlShutdown(void) {
    note("shutdown");
    if (!initialised) return 1;
    if (--initialised < 64) close(descriptors[initialised]);
    return 0; /* gives back even when everything else is broken, as the real one does */
}

const char *nvmlErrorString(int code) {
    static char text[64];
    snprintf(text, sizeof text, "stand-in error %d", code);
    return text;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    char text[128];
    BEGIN(NULL);
    return put(out, size, setting("NVML_DRIVER", "570.133.20", text, sizeof text));
}

int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    BEGIN(NULL);
    return put(out, size, "13.570.133.20");
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    BEGIN(NULL);
    *version = (int)number("NVML_CUDA", 13000);
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN(NULL);
    *count = (unsigned)gpus();
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **handle) {
    Device wanted = {(int)index, -1};
    BEGIN(&wanted);
    if ((int)index >= gpus()) return 2;
    devices[index][0] = wanted;
    *handle = &devices[index][0];
    return 0;
}

int nvmlDeviceGetName(Device *device, char *out, unsigned size) {
    char text[256];
    BEGIN(device);
    if (!item("NVML_NAMES", device->gpu, text, sizeof text)) strcpy(text, "NVIDIA H200");
    if (device->slot >= 0) strncat(text, " MIG 1g.18gb", sizeof text - strlen(text) - 1);
    return put(out, size, text);
}

int nvmlDeviceGetUUID(Device *device, char *out, unsigned size) {
    char text[256];
    BEGIN(device);
    if (device->slot >= 0)
        snprintf(text, sizeof text, "MIG-00000000-0000-0000-%04d-%012d", device->gpu, device->slot);
    else if (!item("NVML_UUIDS", device->gpu, text, sizeof text))
        snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", device->gpu);
    return put(out, size, text);
}

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} Pci;

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    BEGIN(device);
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)device->gpu + 1;
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return 0;
}

typedef struct { unsigned long long total, free, used; } MemoryInfo;

int nvmlDeviceGetMemoryInfo(Device *device, MemoryInfo *memory) {
    BEGIN(device);
    memory->total = (unsigned long long)item_number("NVML_MEMORY_MIB", device->gpu, 143771) << 20;
    if (device->slot >= 0) memory->total /= 7;
    memory->used = memory->total / 4;
    memory->free = memory->total - memory->used;
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    BEGIN(device);
    *major = 9;
    *minor = 0;
    return 0;
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    BEGIN(device);
    *current = *pending = slots(device->gpu) > 0;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
    BEGIN(device);
    *count = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **handle) {
    Device wanted = {device->gpu, (int)index};
    BEGIN(&wanted);
    if ((int)index >= slots(device->gpu) || index > 15) return 6;
    devices[device->gpu][index + 1] = wanted;
    *handle = &devices[device->gpu][index + 1];
    return 0;
}

/* Functions that write one number. */
#define ANSWER(function, type, value)                \
    int function(Device *device, type *out) {        \
        BEGIN(device);                               \
        *out = (type)(value);                        \
        return 0;                                    \
    }

ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned, 700000)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned, 650000)
ANSWER(nvmlDeviceGetPowerUsage, unsigned, 312500)
ANSWER(nvmlDeviceGetFanSpeed, unsigned, number("NVML_FAN", 41))
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, number("NVML_THROTTLE", 0))
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, number("NVML_THROTTLE", 0))

int nvmlDeviceGetUtilizationRates(Device *device, unsigned rates[2]) {
    BEGIN(device);
    if (slots(device->gpu)) return 3; /* MIG has no utilisation, neither on the GPU nor on its instances */
    rates[0] = 37;
    rates[1] = 12;
    return 0;
}

int nvmlDeviceGetTemperature(Device *device, int sensor, unsigned *degrees) {
    (void)sensor;
    BEGIN(device);
    *degrees = 55;
    return 0;
}

int nvmlDeviceGetTemperatureV(Device *device, int versioned[3]) {
    BEGIN(device);
    versioned[2] = 56;
    return 0;
}

int nvmlDeviceGetClockInfo(Device *device, int kind, unsigned *mhz) {
    BEGIN(device);
    *mhz = kind == 1 ? 1980 : 3201;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(Device *device, int kind, int counter, unsigned long long *count) {
    (void)counter;
    BEGIN(device);
    *count = kind == 0 ? 4 : 0;
    return 0;
}

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } Process;

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *list) {
    BEGIN(device);
    unsigned running = (unsigned)item_number("NVML_PROCESSES", device->gpu, 0), room = *count;
    *count = running;
    if (running > room) return 7;
    for (unsigned i = 0; i < running; i++) list[i] = (Process){1000 + i, 1 << 20, ~0u, ~0u};
    return 0;
}
