/* A libcuda without a GPU: memory of the host, a clock that counts, and one kernel, which takes x, y, out and n.
 *
 * cuda.h declares every function that is defined here, so the compiler compares their types with the real ones,
 * and its macros give them the names that the real library exports. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#undef cuEventElapsedTime
#undef cuGetProcAddress
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status);

struct CUevent_st { double time; long synced; };
struct CUmod_st { size_t image; };
struct CUfunc_st { struct CUmod_st *module; int shared; };

static CUresult init_result = CUDA_SUCCESS;
static int devices = 1;
static CUresult pending = CUDA_SUCCESS;
static double now;
static long synced;
static char calls[1 << 20];
static size_t used;

#define LOG(...) do { if (used < sizeof calls - 512) used += (size_t)snprintf(calls + used, 256, __VA_ARGS__); } while (0)

void fake_reset(int init, int count) { init_result = (CUresult)init; devices = count; used = 0; calls[0] = 0; }
void fake_fail(int result) { pending = (CUresult)result; }
const char *fake_calls(void) { return calls; }

/* The numbers that the binding repeats, in the order of the test that asks for them. */
int fake_constant(int index) {
    const int numbers[] = {
        CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NOT_READY,
        CUDA_ERROR_SYSTEM_NOT_READY,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_CACHE_PREFER_SHARED, CU_STREAM_NON_BLOCKING,
        CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, CU_LAUNCH_PARAM_END_AS_INT,
    };
    return index < (int)(sizeof numbers / sizeof *numbers) ? numbers[index] : -1;
}

CUresult cuInit(unsigned flags) { LOG("cuInit %u\n", flags); return init_result; }
CUresult cuDriverGetVersion(int *version) { *version = CUDA_VERSION; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { *count = devices; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = 40 + ordinal;
    return ordinal < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    snprintf(name, (size_t)length, "Fake GPU %d", device - 40);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(device + i);
    return device >= 40 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 108; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 20; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 6; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return device >= 40 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuGetErrorName(CUresult error, const char **text) {
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS) { *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; return CUDA_SUCCESS; }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS) { *text = "an illegal access"; return CUDA_SUCCESS; }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)(uintptr_t)(0x700000000000u + (unsigned)device);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { LOG("cuCtxSetCurrent %p\n", (void *)context); return CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    *module = malloc(sizeof **module);
    (*module)->image = ((const unsigned char *)image)[0];
    return memcmp(image, "\177ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { free(module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    LOG("cuModuleGetFunction %s\n", name);
    *function = malloc(sizeof **function);
    (*function)->module = module;
    (*function)->shared = 48 << 10;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    LOG("cuFuncSetAttribute %d %d\n", attribute, value);
    function->shared = value;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    LOG("cuFuncSetCacheConfig %d\n", config);
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
    *address = (CUdeviceptr)(uintptr_t)malloc(size);
    LOG("cuMemAlloc %zu\n", size);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree(CUdeviceptr address) { free((void *)(uintptr_t)address); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t size, CUstream stream) {
    memcpy((void *)(uintptr_t)target, source, size);
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t size, CUstream stream) {
    memcpy(target, (void *)(uintptr_t)source, size);
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
    memcpy((void *)(uintptr_t)target, (void *)(uintptr_t)source, size);
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, size_t size, CUstream stream) {
    LOG("cuMemsetD8Async %d %zu\n", byte, size);
    /* The buffer that flushes L2 is large, and nobody looks at it. */
    memset((void *)(uintptr_t)target, byte, size < (1 << 20) ? size : 1);
    now += 100;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    *stream = (CUstream)(uintptr_t)0x600000000001u;
    return flags == CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamSynchronize(CUstream stream) {
    synced++;
    return stream ? pending : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
    *event = calloc(1, sizeof **event);
    return flags == CU_EVENT_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
    event->time = now;
    event->synced = synced;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventQuery(CUevent event) {
    if (pending) return pending;
    return event->synced == synced ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    *milliseconds = (float)((end->time - start->time) / 1000);
    return end->synced == synced ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    if (!stream || parameters || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER
        || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != CU_LAUNCH_PARAM_END)
        return CUDA_ERROR_INVALID_VALUE;
    if ((int)shared > function->shared)
        return CUDA_ERROR_INVALID_VALUE;
    LOG("cuLaunchKernel %u %u %u, %u %u %u, %u, %zu\n", gx, gy, gz, bx, by, bz, shared, *(size_t *)extra[3]);
    struct { const uint16_t *x, *y; uint16_t *out; int count; } *area = extra[1];
    for (int i = 0; i < area->count; i++)
        area->out[i] = area->x[i] ^ area->y[i];
    now += 21;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            LOG("clusters %u %u %u\n", config->attrs[i].value.clusterDim.x, config->attrs[i].value.clusterDim.y,
                config->attrs[i].value.clusterDim.z);
        else
            LOG("attribute %d %d\n", (int)config->attrs[i].id, config->attrs[i].value.cooperative);
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                          config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters,
                          extra);
}

/* A tensor map that says what it was asked for, to be compared number by number. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    memset(map, 0, sizeof *map);
    map->opaque[0] = (cuuint64_t)(uintptr_t)address;
    map->opaque[15] = rank;
    LOG("map %d, %u", (int)type, rank);
    for (cuuint32_t i = 0; i < rank; i++)
        LOG(", %llu of %u by %u", (unsigned long long)sizes[i], box[i], steps[i]);
    for (cuuint32_t i = 0; i + 1 < rank; i++)
        LOG(", stride %llu", (unsigned long long)strides[i]);
    LOG(", %d %d %d %d\n", (int)interleave, (int)swizzle, (int)promotion, (int)fill);
    return CUDA_SUCCESS;
}

/* Capturing is only logged: what a graph would run is run at once. */
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    LOG("capture %d\n", (int)mode);
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    *graph = (CUgraph)(uintptr_t)0x500000000001u;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuGraphInstantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    *made = (CUgraphExec)(uintptr_t)0x500000000002u;
    return graph && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGraphDestroy(CUgraph graph) { LOG("graph %p gone\n", (void *)graph); return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec made, CUstream stream) {
    LOG("run %p\n", (void *)made);
    return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuGraphExecDestroy(CUgraphExec made) { LOG("made %p gone\n", (void *)made); return CUDA_SUCCESS; }
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    LOG("recorded %u\n", flags);
    return cuEventRecord(event, stream);
}

/* How NVIDIA's Python bindings find everything: by the plain name, whatever the library calls the newest version. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    static const char *const suffixes[] = {"_v2", ""};
    Dl_info self;
    void *library = dladdr((void *)(uintptr_t)cuInit, &self) ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    char name[128];
    (void)version;
    (void)flags;
    *function = NULL;
    for (int i = 0; i < 2 && !*function; i++) {
        snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
        *function = dlsym(library, name);
    }
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
